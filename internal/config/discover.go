package config

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"

	"github.com/etcdkit/etcdkit/internal/cli"
	"github.com/etcdkit/etcdkit/internal/etcd"
	"github.com/etcdkit/etcdkit/internal/hint"
)

// The values of --discover that are no layout's name.
const (
	discoverAuto = "auto"
	discoverNone = "none"
)

// discover fills in the etcd that the node's own files describe, unless
// anything says where to connect: it is all or nothing, for a mixture could
// show one cluster's credentials to another. What was found is always told.
func (f *Flags) discover(env *cli.Env, c *etcd.Config) error {
	if f.Discover == discoverNone || f.directed() {
		return nil
	}
	name := f.Discover
	if name == discoverAuto {
		name = ""
	}
	found, err := etcd.Discover(f.root(), name)
	switch {
	case errors.Is(err, etcd.ErrNothingFound) && name == "":
		return nil
	case err != nil && name == "":
		fmt.Fprintf(env.Err, "etcdkit: warning: %v; trying %s without certificates\n", err, c.Endpoints[0])
		return nil
	case err != nil:
		return cli.Usage(hint.With(err, "--discover auto looks for every layout, --endpoints says where to connect"))
	}
	f.Found = found
	c.Endpoints = slices.Clone(found.Endpoints)
	c.TLS.CACert, c.TLS.Cert, c.TLS.Key = found.TLS.CACert, found.TLS.Cert, found.TLS.Key
	fmt.Fprintf(env.Err, "etcdkit: found %s on this node: %s", found.Name, found.Endpoints[0])
	if found.TLS.Cert != "" {
		fmt.Fprintf(env.Err, " with %s", found.TLS.Cert)
	}
	fmt.Fprintln(env.Err, " (--discover none to ignore it)")
	return nil
}

// directed reports whether anything says where to connect, or as whom.
func (f *Flags) directed() bool {
	if f.Context != "" {
		return true
	}
	for _, name := range []string{"endpoints", "cacert", "cert", "key", "discovery-srv"} {
		if f.sources[name] != "" {
			return true
		}
	}
	for _, source := range f.sources {
		if source == sourceFile { // the current context
			return true
		}
	}
	return false
}

func (f *Flags) root() fs.FS {
	if f.Root != nil {
		return f.Root
	}
	return os.DirFS("/")
}
