package config

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/viper"

	"github.com/etcdkit/etcdkit/internal/cli"
	"github.com/etcdkit/etcdkit/internal/hint"
)

// systemFile is read when the user has no file of their own.
const systemFile = "/etc/etcdkit/config.yaml"

// Context holds settings for one cluster: values by flag name.
type Context map[string]any

// File is the configuration file.
type File struct {
	Path         string // "" when there is none
	Current      string // the context used when none is asked for
	Contexts     map[string]Context
	Repositories map[string]map[string]any // settings by repository name, then by key
}

// Load reads the configuration file: path if it is given, else the user's, else
// the system's. Without any of the latter two the result is empty.
func Load(path string, env *cli.Env) (*File, error) {
	if path != "" {
		return read(path)
	}
	for _, p := range defaultPaths(env) {
		file, err := read(p)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		return file, err
	}
	return &File{}, nil
}

func defaultPaths(env *cli.Env) []string {
	dir := env.Getenv("XDG_CONFIG_HOME")
	if home := env.Getenv("HOME"); dir == "" && home != "" {
		dir = filepath.Join(home, ".config")
	}
	if dir == "" {
		return []string{systemFile}
	}
	return []string{filepath.Join(dir, "etcdkit", "config.yaml"), systemFile}
}

// keyDelimiter separates viper's path elements. Context names may hold dots, as
// host names do, so the usual delimiter will not do.
const keyDelimiter = "\x00"

func read(path string) (*File, error) {
	if _, err := os.Stat(path); err != nil {
		return nil, fmt.Errorf("configuration file: %w", err)
	}
	v := viper.NewWithOptions(viper.KeyDelimiter(keyDelimiter))
	v.SetConfigFile(path)
	v.SetConfigType("yaml")
	if err := v.ReadInConfig(); err != nil {
		return nil, fmt.Errorf("configuration file %s: %w", path, err)
	}
	file := &File{Path: path, Current: v.GetString("context"), Contexts: map[string]Context{}, Repositories: map[string]map[string]any{}}
	for key := range v.AllSettings() {
		switch key {
		case "context", "contexts", "repositories":
		default:
			return nil, hint.With(fmt.Errorf("configuration file %s: unknown key %q", path, key), "%s",
				Suggestion(key, []string{"context", "contexts", "repositories"}, "the keys are context, contexts and repositories"))
		}
	}
	for name := range v.GetStringMap("contexts") {
		settings := v.GetStringMap("contexts" + keyDelimiter + name)
		if err := checkContext(settings); err != nil {
			return nil, fmt.Errorf("configuration file %s: context %s: %w", path, name, err)
		}
		file.Contexts[name] = settings
	}
	for name := range v.GetStringMap("repositories") {
		file.Repositories[name] = v.GetStringMap("repositories" + keyDelimiter + name)
	}
	return file, nil
}

// context returns the settings of the context called name, or of the current
// one, or none.
func (f *File) context(name string) (Context, error) {
	if name == "" {
		name = f.Current
	}
	if name == "" {
		return nil, nil
	}
	settings, ok := f.Contexts[strings.ToLower(name)] // viper keeps keys in lower case
	if ok {
		return settings, nil
	}
	err := fmt.Errorf("context %q is not in the configuration file %s", name, f.Path)
	if f.Path == "" {
		return nil, hint.With(fmt.Errorf("context %q: there is no configuration file", name), "write ~/.config/etcdkit/config.yaml or give --config")
	}
	return nil, hint.With(err, "it has %s", strings.Join(slices.Sorted(maps.Keys(f.Contexts)), ", "))
}
