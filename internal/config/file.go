package config

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/afero"
	"github.com/spf13/viper"

	"github.com/etcdkit/etcdkit/internal/cli"
	"github.com/etcdkit/etcdkit/internal/hint"
)

const (
	// systemFile is read when the user has no file of their own.
	systemFile = "/etc/etcdkit/config.yaml"
	// maxFileSize bounds a configuration file, in bytes. Real ones have a few KiB.
	maxFileSize = 1 << 20
)

// A FileSetting is one value of the configuration file.
type FileSetting struct {
	Values []string // one value, or the items of a list
	List   bool
	Line   int // of the file, counted from 1
}

// Context holds the settings of one cluster by flag name.
type Context map[string]FileSetting

// Repository is a named place for backups.
type Repository struct {
	URL      string
	Settings map[string]FileSetting // by the flag that overrides it
	Line     int
}

// File is the configuration file.
type File struct {
	Path         string // "" when there is none
	Current      string // the context used when none is asked for
	Contexts     map[string]Context
	Repositories map[string]Repository
	Warnings     []string // what is understood, but unsafe
}

// Load reads the configuration file: path if it is given, else the user's, else
// the system's. Without any of the latter two the result is empty. A default
// file that may not be read is a warning; one that was asked for is an error.
func Load(path string, env *cli.Env) (*File, error) {
	if path != "" {
		return read(path, env)
	}
	var warnings []string
	for _, p := range defaultPaths(env) {
		file, err := read(p, env)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			continue
		case errors.Is(err, fs.ErrPermission):
			warnings = append(warnings, fmt.Sprintf("%v; the file is ignored", err))
			continue
		case err != nil:
			return nil, err
		}
		file.Warnings = append(warnings, file.Warnings...)
		return file, nil
	}
	return &File{Warnings: warnings}, nil
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

// read has viper read the file, and decodes its bytes strictly. A signal ends a
// read that blocks.
func read(path string, env *cli.Env) (*File, error) {
	file := &File{Path: path, Contexts: map[string]Context{}, Repositories: map[string]Repository{}}
	v := viper.NewWithOptions(viper.WithDecoderRegistry(strictDecoder{file}))
	v.SetFs(regularFiles{afero.NewOsFs()})
	v.SetConfigFile(path)
	v.SetConfigType("yaml")
	_, err := cli.Interruptible(env, func() (struct{}, error) { return struct{}{}, v.ReadInConfig() })
	if parse, ok := errors.AsType[viper.ConfigParseError](err); ok {
		err = parse.Unwrap()
	}
	if pathErr, ok := errors.AsType[*fs.PathError](err); ok {
		return nil, fmt.Errorf("configuration file: %w", pathErr)
	}
	if err != nil {
		return nil, fmt.Errorf("configuration file %s: %w", path, err)
	}
	if who := cli.WritableByOthers(path); who != "" {
		file.Warnings = append(file.Warnings, fmt.Sprintf("configuration file %s: %s, who can send commands to another cluster", path, who))
	}
	return file, nil
}

// regularFiles opens regular files of a sane size only: reading a FIFO would
// hang, and a device may never end.
type regularFiles struct{ afero.Fs }

func (f regularFiles) Open(name string) (afero.File, error) {
	info, err := f.Stat(name)
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, &fs.PathError{Op: "open", Path: name, Err: errors.New("not a regular file")}
	case info.Size() > maxFileSize:
		return nil, &fs.PathError{Op: "open", Path: name, Err: fmt.Errorf("%d bytes are too many for a configuration file (at most %d)", info.Size(), maxFileSize)}
	}
	file, err := f.Fs.Open(name)
	return file, err
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
	if settings, ok := f.Contexts[name]; ok {
		return settings, nil
	}
	if f.Path == "" {
		return nil, hint.With(fmt.Errorf("context %q: there is no configuration file", name), "write ~/.config/etcdkit/config.yaml or give --config")
	}
	err := fmt.Errorf("context %q is not in the configuration file %s", name, f.Path)
	return nil, hint.With(err, "%s", Known("contexts", slices.Sorted(maps.Keys(f.Contexts)), name))
}

// Known returns a hint for a name that the configuration file does not have:
// the same name in another case, or all names there are.
func Known(what string, names []string, wrong string) string {
	for _, name := range names {
		if strings.EqualFold(name, wrong) {
			return "names are case-sensitive; did you mean " + name + "?"
		}
	}
	if len(names) == 0 {
		return "the file has no " + what
	}
	return "the file has the " + what + " " + strings.Join(names, ", ")
}
