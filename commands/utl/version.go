package utl

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	"go.etcd.io/etcd/api/v3/version"
)

// newVersionCmd is upstream's only: the etcdkit tree has one of its own.
func newVersionCmd(t *tree) *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Prints the version of etcdutl",
		RunE: t.run(func(context.Context, []string) error {
			_, err := fmt.Fprintf(t.Out, "etcdutl version: %s\nAPI version: %s\n", version.Version, version.APIVersion)
			return err
		}),
	}
}
