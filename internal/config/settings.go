package config

import (
	"slices"
	"strings"

	"github.com/spf13/pflag"
)

// A Setting is the value that a flag has in this run, and where it came from.
type Setting struct {
	Name   string `json:"name"`
	Value  string `json:"value"`
	Source string `json:"source"` // flag, variable NAME, configuration file, or default
}

// Settings returns the value of every flag of fs that a variable may set, in
// the order of their names, secrets hidden. Fill comes first.
func (f *Flags) Settings(fs *pflag.FlagSet) []Setting {
	var all []Setting
	fs.VisitAll(func(flag *pflag.Flag) {
		if flag.Annotations[envMark] == nil {
			return
		}
		s := Setting{Name: flag.Name, Value: redactValue(flag.Name, flag.Value.String()), Source: f.sources[flag.Name]}
		if s.Source == "" {
			s.Source = "default"
		}
		all = append(all, s)
	})
	slices.SortFunc(all, func(a, b Setting) int { return strings.Compare(a.Name, b.Name) })
	return all
}
