package config

import (
	"fmt"

	"github.com/spf13/pflag"

	"github.com/etcdkit/etcdkit/internal/cli"
	"github.com/etcdkit/etcdkit/internal/hint"
)

// checkContext refuses settings that no flag would take: a misspelt one would
// silently lead to another cluster.
func checkContext(settings map[string]any) error {
	var f Flags
	fs := pflag.NewFlagSet("context", pflag.ContinueOnError)
	f.Bind(fs, cli.Native)
	for key := range settings {
		flag := fs.Lookup(key)
		if flag == nil || flag.Annotations[envMark] == nil || key == "context" || key == "config" {
			return hint.With(fmt.Errorf("unknown setting %q", key), "settings are named like the connection flags: endpoints, cacert, cert, key, user, password-file, ...")
		}
	}
	return nil
}
