package config

import (
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

// Variable returns the name of flag's own variable.
func Variable(flag string) string { return nativePrefix + suffix(flag) }

func suffix(flag string) string { return strings.ToUpper(strings.ReplaceAll(flag, "-", "_")) }

// Fill sets the flags of fs that were not typed: from their variables, then
// from the chosen context of the configuration file. It is called once, before
// the command runs.
func (f *Flags) Fill(fs *pflag.FlagSet, env *cli.Env) error {
	// The file is chosen by flags that have variables themselves.
	for _, name := range []string{"config", "context"} {
		if err := fillFlag(fs.Lookup(name), env, nil); err != nil {
			return err
		}
	}
	file, err := Load(f.ConfigFile, env)
	if err != nil {
		return err
	}
	settings, err := file.context(f.Context)
	if err != nil {
		return err
	}
	fs.VisitAll(func(flag *pflag.Flag) {
		if err == nil {
			err = fillFlag(flag, env, settings)
		}
	})
	return err
}

// fillFlag sets one flag by its Value, not through the flag set: Changed must
// keep meaning "typed".
func fillFlag(flag *pflag.Flag, env *cli.Env, settings Context) error {
	if flag == nil || flag.Changed || flag.Annotations[envMark] == nil {
		return nil
	}
	for _, prefix := range []string{nativePrefix, upstreamPrefix} {
		name := prefix + suffix(flag.Name)
		value := env.Getenv(name)
		if value == "" {
			continue
		}
		if err := set(flag, value); err != nil {
			return hint.With(fmt.Errorf("variable %s: %w", name, redact(flag, err)), "it takes the same values as --%s", flag.Name)
		}
		return nil
	}
	value, ok := settings[flag.Name]
	if !ok {
		return nil
	}
	if err := setFromFile(flag, value); err != nil {
		return fmt.Errorf("configuration file: %s: %w", flag.Name, redact(flag, err))
	}
	return nil
}

func set(flag *pflag.Flag, value string) error {
	if list, ok := flag.Value.(pflag.SliceValue); ok {
		return list.Replace(splitList(value))
	}
	return flag.Value.Set(value)
}

func setFromFile(flag *pflag.Flag, value any) error {
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
		return fmt.Errorf("one value expected, not a list")
	}
	return set(flag, fmt.Sprint(value))
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
	if Secret(flag.Name) {
		return fmt.Errorf("not a valid value")
	}
	return err
}

// Secret reports whether the flag's value must never be shown.
func Secret(flag string) bool {
	switch flag {
	case "password", "user", "auth-jwt-token", "dest-password", "dest-user", "new-user-password":
		return true
	}
	return false
}
