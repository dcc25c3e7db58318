package ctl

import (
	"context"
	"fmt"
	"runtime"

	"github.com/spf13/cobra"
	etcdversion "go.etcd.io/etcd/api/v3/version"

	"github.com/etcdkit/etcdkit/internal/version"
)

func newVersionCmd(t *tree) *cobra.Command {
	cmd := &cobra.Command{
		Use: "version", Short: "Prints the version of etcdctl", GroupID: groupUtility,
		RunE: t.run(func(_ context.Context, args []string) error { return runVersion(t, args) }),
	}
	if !t.upstream() {
		cmd.Short = "Prints the version of etcdkit"
		cmd.Long = `Shows which etcdkit this is, which etcd's commands it follows, and which API it
speaks.

  etcdkit version -w json

Exit codes: 0 shown, 2 wrong usage.`
	}
	return t.offer(cmd)
}

// versions is the answer of version, natively.
type versions struct {
	Version     string `json:"version"`
	EtcdVersion string `json:"etcdVersion"`
	APIVersion  string `json:"apiVersion"`
	GoVersion   string `json:"goVersion"`
	Platform    string `json:"platform"`
}

func runVersion(t *tree, args []string) error {
	if t.upstream() {
		_, err := fmt.Fprintf(t.Out, "etcdctl version: %s\nAPI version: %s\n", etcdversion.Version, etcdversion.APIVersion)
		return err
	}
	if err := t.tooMany(args, 0); err != nil {
		return err
	}
	v := versions{version.String(), etcdversion.Version, etcdversion.APIVersion, runtime.Version(), runtime.GOOS + "/" + runtime.GOARCH}
	return t.print(result{
		native: v,
		simple: lines("etcdkit version: "+v.Version, "etcd version: "+v.EtcdVersion, "API version: "+v.APIVersion, "built with: "+v.GoVersion+" for "+v.Platform),
	})
}
