package config

import (
	"fmt"
	"maps"
	"slices"
	"strings"

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

// checkContext refuses settings that no flag would take, and values that their
// flag would refuse: a misspelt one would silently lead to another cluster.
func (f *File) checkContext(name string, settings Context) error {
	flags := contextFlags()
	for _, key := range slices.Sorted(maps.Keys(settings)) {
		value := settings[key]
		flag := flags.Lookup(key)
		if flag == nil {
			var names []string
			flags.VisitAll(func(flag *pflag.Flag) { names = append(names, flag.Name) })
			return hint.With(at(value.Line, fmt.Errorf("context %s: unknown setting %q", name, key)), "%s", Suggestion(key, names,
				"settings are named like the connection flags: endpoints, cacert, cert, key, user, password-file"))
		}
		if isReferable(key) && refersElsewhere(value) {
			continue // read when the context is used
		}
		if err := set(flag, value); err != nil {
			return at(value.Line, fmt.Errorf("context %s: %s: %w", name, key, err))
		}
		if holdsPassword(key, value) {
			f.Warnings = append(f.Warnings, fmt.Sprintf("configuration file %s: line %d: context %s: %s holds a password in clear; name a file with file:PATH, or a variable with env:NAME",
				f.Path, value.Line, name, key))
		}
	}
	return nil
}

// namesCluster reports whether the context says where its cluster is. One that
// does not would lead to whatever cluster is the default.
func (c Context) namesCluster() bool {
	for _, key := range []string{"endpoints", "discovery-srv"} {
		if _, ok := c[key]; ok {
			return true
		}
	}
	return false
}

// holdsPassword reports whether a setting is a secret itself, and not where to
// find one.
func holdsPassword(key string, value FileSetting) bool {
	switch {
	case refersElsewhere(value):
		return false
	case key == "user":
		return strings.Contains(strings.Join(value.Values, ""), ":")
	}
	return Secret(key)
}

// Validate checks what Load does not: that the current context exists, and that
// secrets can be read.
func (f *File) Validate(env *cli.Env) error {
	if _, err := f.context(""); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(f.Contexts)) {
		flags := contextFlags()
		for _, key := range slices.Sorted(maps.Keys(f.Contexts[name])) {
			value := f.Contexts[name][key]
			if err := setFromFile(flags.Lookup(key), value, env); err != nil {
				return fmt.Errorf("configuration file %s: line %d: context %s: %s: %w", f.Path, value.Line, name, key, err)
			}
		}
	}
	return nil
}
