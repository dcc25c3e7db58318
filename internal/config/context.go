package config

import (
	"fmt"
	"maps"
	"slices"

	"github.com/spf13/pflag"

	"github.com/etcdkit/etcdkit/internal/cli"
	"github.com/etcdkit/etcdkit/internal/hint"
)

// contextFlags returns the flags that a context may set, with their defaults.
func contextFlags() *pflag.FlagSet {
	var f Flags
	all := pflag.NewFlagSet("context", pflag.ContinueOnError)
	f.Bind(all, cli.Native)
	fs := pflag.NewFlagSet("context", pflag.ContinueOnError)
	all.VisitAll(func(flag *pflag.Flag) {
		if flag.Annotations[envMark] != nil && flag.Name != "context" && flag.Name != "config" && flag.Name != "discover" {
			fs.AddFlag(flag)
		}
	})
	return fs
}

// checkContext refuses settings that no flag would take: a misspelt one would
// silently lead to another cluster.
func checkContext(settings map[string]any) error {
	fs := contextFlags()
	for _, key := range slices.Sorted(maps.Keys(settings)) {
		if fs.Lookup(key) != nil {
			continue
		}
		var names []string
		fs.VisitAll(func(flag *pflag.Flag) { names = append(names, flag.Name) })
		return hint.With(fmt.Errorf("unknown setting %q", key), "%s", Suggestion(key, names,
			"settings are named like the connection flags: endpoints, cacert, cert, key, user, password-file"))
	}
	return nil
}

// Validate checks what Load does not: that every value of every context is one
// its flag takes, that the current context exists, and that secrets can be read.
func (f *File) Validate(env *cli.Env) error {
	if _, err := f.context(""); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(f.Contexts)) {
		fs := contextFlags()
		for _, key := range slices.Sorted(maps.Keys(f.Contexts[name])) {
			if err := setFromFile(fs.Lookup(key), f.Contexts[name][key], env); err != nil {
				return fmt.Errorf("configuration file %s: context %s: %s: %w", f.Path, name, key, err)
			}
		}
	}
	return nil
}
