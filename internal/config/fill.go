package config

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/etcdkit/etcdkit/internal/cli"
	"github.com/etcdkit/etcdkit/internal/hint"
)

// Prefixes of the variables, the stronger first.
const (
	nativePrefix   = "ETCDKIT_"
	upstreamPrefix = "ETCDCTL_"
)

func suffix(flag string) string { return strings.ToUpper(strings.ReplaceAll(flag, "-", "_")) }

// Fill sets the flags of fs that were not typed: from their variables, then
// from the chosen context of the configuration file. A typed --context beats the
// variables that name a cluster. It is called once, before the command runs.
func (f *Flags) Fill(fs *pflag.FlagSet, env *cli.Env) error {
	f.sources, f.filled = map[string]string{}, fs
	// The file is chosen by flags that have variables themselves.
	for _, name := range []string{"config", "context"} {
		if err := f.fillFlag(fs.Lookup(name), env, contextChoice{}); err != nil {
			return err
		}
	}
	file, err := Load(f.ConfigFile, env)
	if err != nil {
		return err
	}
	f.File = file
	settings, err := file.context(f.Context)
	if err != nil {
		return err
	}
	choice := contextChoice{name: cmp.Or(f.Context, file.Current), settings: settings, typed: f.sources["context"] == sourceFlag}
	fs.VisitAll(func(flag *pflag.Flag) {
		if err == nil {
			err = f.fillFlag(flag, env, choice)
		}
	})
	if err != nil {
		return err
	}
	return f.refuseMixture(choice)
}

// Where the value of a flag came from, see Setting.
const (
	sourceFlag   = "flag"
	sourceFile   = "configuration file"
	sourcePrefix = "variable "
)

// fillFlag sets one flag by its Value, not through the flag set: Changed must
// keep meaning "typed".
func (f *Flags) fillFlag(flag *pflag.Flag, env *cli.Env, choice contextChoice) error {
	switch {
	case flag == nil:
		return nil
	case flag.Changed:
		f.sources[flag.Name] = sourceFlag
		return nil
	case flag.Annotations[envMark] == nil:
		return nil
	}
	if name, value := variableOf(flag.Name, env); name != "" && !choice.overrides(flag.Name) {
		f.sources[flag.Name] = sourcePrefix + name
		if err := set(flag, FileSetting{Values: []string{value}}); err != nil {
			return hint.With(fmt.Errorf("variable %s: %w", name, err), "it takes the same values as --%s", flag.Name)
		}
		return nil
	}
	value, ok := choice.settings[flag.Name]
	if !ok {
		return nil
	}
	f.sources[flag.Name] = sourceFile
	if err := setFromFile(flag, value, env); err != nil {
		return fmt.Errorf("configuration file %s: line %d: context %s: %s: %w", f.File.Path, value.Line, choice.name, flag.Name, err)
	}
	return nil
}

// variableOf returns the variable that sets a flag, and its value, or "".
func variableOf(flag string, env *cli.Env) (name, value string) {
	for _, prefix := range []string{nativePrefix, upstreamPrefix} {
		name := prefix + suffix(flag)
		if value := env.Getenv(name); value != "" {
			return name, value
		}
	}
	return "", ""
}

// set sets a flag to a value, or to the items of a list. The error never holds
// a value that may be a secret.
func set(flag *pflag.Flag, value FileSetting) error {
	list, takesList := flag.Value.(pflag.SliceValue)
	switch {
	case takesList && value.List:
		return list.Replace(value.Values)
	case takesList:
		items := splitList(value.Values[0])
		if slices.Contains(items, "") {
			return errors.New("an item of the list is empty")
		}
		return list.Replace(items)
	case value.List:
		return errors.New("want one value, got a list")
	}
	return redact(flag, flag.Value.Set(value.Values[0]))
}

// setFromFile is set for a setting that may say where the value is.
func setFromFile(flag *pflag.Flag, value FileSetting, env *cli.Env) error {
	if !isReferable(flag.Name) || value.List {
		return set(flag, value)
	}
	secret, err := Reference(value.Values[0], env)
	if err != nil {
		return err
	}
	return set(flag, FileSetting{Values: []string{secret}, Line: value.Line})
}

// FillFrom sets the flag called name to a setting of a repository, unless the
// flag has a value already. A flag that fs does not have is ignored: it means
// nothing to the command.
func FillFrom(fs *pflag.FlagSet, name string, value FileSetting) error {
	flag := fs.Lookup(name)
	if flag == nil || flag.Changed || flag.Value.String() != flag.DefValue {
		return nil
	}
	return set(flag, value)
}

// isReferable reports whether a setting of a context may be file:PATH or
// env:NAME.
func isReferable(flag string) bool { return Secret(flag) && !secretURL(flag) }

// refersElsewhere reports whether a setting says where its value is.
func refersElsewhere(value FileSetting) bool {
	return !value.List && (strings.HasPrefix(value.Values[0], "env:") || strings.HasPrefix(value.Values[0], "file:"))
}

func splitList(value string) []string {
	items := strings.Split(value, ",")
	for i := range items {
		items[i] = strings.TrimSpace(items[i])
	}
	return items
}

// redact keeps the value out of the error where it may be a secret.
func redact(flag *pflag.Flag, err error) error {
	if err != nil && Secret(flag.Name) {
		return errors.New("not a valid value")
	}
	return err
}

// Secret reports whether the flag's value must never be shown.
func Secret(flag string) bool {
	switch flag {
	case "password", "user", "auth-jwt-token", "dest-password", "dest-user", "new-user-password":
		return true
	}
	return secretURL(flag)
}

// secretURL reports whether the flag's value is a URL that may hold a password
// or a token. It may be a reference everywhere, not only in the file.
func secretURL(flag string) bool {
	switch flag {
	case "ping-url", "s3-proxy", "to-s3-proxy":
		return true
	}
	return false
}

// isReference reports whether a secret URL's value may be shown: it only says where
// the URL stands, or that there is none.
func isReference(value string) bool {
	return value == "none" || strings.HasPrefix(value, "env:") || strings.HasPrefix(value, "file:")
}
