package config

import (
	"errors"
	"fmt"
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
// from the chosen context of the configuration file. It is called once, before
// the command runs.
func (f *Flags) Fill(fs *pflag.FlagSet, env *cli.Env) error {
	f.sources = map[string]string{}
	// The file is chosen by flags that have variables themselves.
	for _, name := range []string{"config", "context"} {
		if err := f.fillFlag(fs.Lookup(name), env, nil); err != nil {
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
	fs.VisitAll(func(flag *pflag.Flag) {
		if err == nil {
			err = f.fillFlag(flag, env, settings)
		}
	})
	return err
}

// fillFlag sets one flag by its Value, not through the flag set: Changed must
// keep meaning "typed".
func (f *Flags) fillFlag(flag *pflag.Flag, env *cli.Env, settings Context) error {
	switch {
	case flag == nil:
		return nil
	case flag.Changed:
		f.sources[flag.Name] = "flag"
		return nil
	case flag.Annotations[envMark] == nil:
		return nil
	}
	for _, prefix := range []string{nativePrefix, upstreamPrefix} {
		name := prefix + suffix(flag.Name)
		value := env.Getenv(name)
		if value == "" {
			continue
		}
		f.sources[flag.Name] = "variable " + name
		if err := set(flag, value); err != nil {
			return hint.With(fmt.Errorf("variable %s: %w", name, redact(flag, err)), "it takes the same values as --%s", flag.Name)
		}
		return nil
	}
	value, ok := settings[flag.Name]
	if !ok {
		return nil
	}
	f.sources[flag.Name] = "configuration file"
	if err := setFromFile(flag, value, env); err != nil {
		return fmt.Errorf("configuration file: %s: %w", flag.Name, err)
	}
	return nil
}

func set(flag *pflag.Flag, value string) error {
	if list, ok := flag.Value.(pflag.SliceValue); ok {
		return list.Replace(splitList(value))
	}
	return flag.Value.Set(value)
}

func setFromFile(flag *pflag.Flag, value any, env *cli.Env) error {
	if text, ok := value.(string); ok && Secret(flag.Name) && !secretURL(flag.Name) {
		secret, err := Reference(text, env)
		if err != nil {
			return err
		}
		return redact(flag, set(flag, secret))
	}
	items, isList := value.([]any)
	list, takesList := flag.Value.(pflag.SliceValue)
	switch {
	case isList && takesList:
		texts := make([]string, len(items))
		for i, item := range items {
			texts[i] = fmt.Sprint(item)
		}
		return list.Replace(texts)
	case isList:
		return errors.New("one value expected, not a list")
	}
	return redact(flag, set(flag, fmt.Sprint(value)))
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

// open reports whether a secret URL's value may be shown: it only says where
// the URL stands, or that there is none.
func open(value string) bool {
	return value == "none" || strings.HasPrefix(value, "env:") || strings.HasPrefix(value, "file:")
}
