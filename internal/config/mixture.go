package config

import (
	"fmt"
	"slices"
	"strings"

	"github.com/etcdkit/etcdkit/internal/cli"
	"github.com/etcdkit/etcdkit/internal/hint"
)

// contextChoice is the context in use.
type contextChoice struct {
	name     string
	settings Context
	typed    bool // by --context on the command line
}

// overrides reports whether the context, being typed, keeps a variable from
// setting a flag. A password may come from a variable where the context names
// the user alone.
func (c contextChoice) overrides(flag string) bool {
	return c.typed && isClusterSetting(flag) && !c.wantsPassword(flag)
}

// wantsPassword reports whether flag is what the context's user still lacks.
func (c contextChoice) wantsPassword(flag string) bool {
	if flag != "password" && flag != "password-file" {
		return false
	}
	user, ok := c.settings["user"]
	if !ok || holdsPassword("user", user) {
		return false
	}
	for _, other := range []string{"password", "password-file", "auth-jwt-token"} {
		if _, ok := c.settings[other]; ok {
			return false
		}
	}
	return true
}

// clusterSettings are the settings that belong to one cluster: where it is, how
// it is verified, and who the user is there.
func clusterSettings() []string {
	return []string{
		"endpoints", "discovery-srv", "discovery-srv-name", "cacert", "cert", "key",
		"user", "password", "password-file", "auth-jwt-token",
	}
}

func isClusterSetting(flag string) bool { return slices.Contains(clusterSettings(), flag) }

// refuseMixture refuses to combine what variables say about one cluster with
// what the context says about another: the commands could go to the wrong one,
// and show it the other's password.
func (f *Flags) refuseMixture(c contextChoice) error {
	var fromVariable, fromFile []string
	for _, flag := range clusterSettings() {
		switch source := f.sources[flag]; {
		case source == sourceFile:
			fromFile = append(fromFile, flag)
		case strings.HasPrefix(source, sourcePrefix) && !c.wantsPassword(flag) && !f.isSubset(flag, c):
			fromVariable = append(fromVariable, strings.TrimPrefix(source, sourcePrefix))
		}
	}
	if len(fromVariable) == 0 || len(fromFile) == 0 {
		return nil
	}
	return cli.Usage(hint.With(fmt.Errorf("settings of two clusters are mixed: %s from the environment, and %s from context %s of %s",
		strings.Join(fromVariable, ", "), strings.Join(fromFile, ", "), c.name, f.File.Path),
		"type --context %s to use that context alone, or unset %s", c.name, strings.Join(fromVariable, " ")))
}

// isSubset reports whether flag is the endpoints, and all of them are among the
// context's.
func (f *Flags) isSubset(flag string, c contextChoice) bool {
	all, ok := c.settings["endpoints"]
	if flag != "endpoints" || !ok {
		return false
	}
	if !all.List {
		all.Values = splitList(all.Values[0])
	}
	return !slices.ContainsFunc(f.Conn.Endpoints, func(ep string) bool { return !slices.Contains(all.Values, ep) })
}
