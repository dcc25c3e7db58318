package config

import (
	"errors"
	"fmt"
	"strings"

	"go.etcd.io/etcd/client/pkg/v3/srv"

	"github.com/etcdkit/etcdkit/internal/cli"
	"github.com/etcdkit/etcdkit/internal/etcd"
	"github.com/etcdkit/etcdkit/internal/hint"
)

// Connection returns how to connect, after SRV discovery and with the password
// read or asked for. It is for the native dialect; Fill comes first.
func (f *Flags) Connection(env *cli.Env) (etcd.Config, error) {
	c := f.Conn
	for i, ep := range c.Endpoints {
		c.Endpoints[i] = strings.TrimSpace(ep)
	}
	if err := f.discover(env, &c); err != nil {
		return c, err
	}
	resolve, err := etcd.ParseResolve(f.Resolve)
	if err != nil {
		return c, cli.Usage(err)
	}
	c.Resolve = resolve
	if (c.TLS.Cert == "") != (c.TLS.Key == "") {
		return c, cli.Usage(hint.With(errors.New("--cert and --key go together"), "give both, or neither"))
	}
	if f.DiscoverySRV != "" {
		eps, err := f.discoverSRV()
		if err != nil {
			return c, err
		}
		c.Endpoints = eps
		if !f.InsecureDiscovery {
			c.TLS.ServerName = f.DiscoverySRV
		}
	}
	auth, err := f.auth(env)
	c.Auth = auth
	return c, err
}

func (f *Flags) discoverSRV() ([]string, error) {
	clients, err := srv.GetClient("etcd-client", f.DiscoverySRV, f.DiscoverySRVName)
	if err != nil {
		return nil, hint.With(fmt.Errorf("discover endpoints of %s: %w", f.DiscoverySRV, err), "the domain needs _etcd-client._tcp or _etcd-client-ssl._tcp SRV records")
	}
	var eps []string
	for _, ep := range clients.Endpoints {
		if f.InsecureDiscovery || !strings.HasPrefix(ep, "http://") {
			eps = append(eps, ep)
		}
	}
	if len(eps) == 0 {
		return nil, hint.With(fmt.Errorf("discover endpoints of %s: no secure one", f.DiscoverySRV), "--insecure-discovery accepts plain ones")
	}
	return eps, nil
}

// auth returns the user's identity. A password on the command line can be seen
// by every user of the machine, so there are a file and a prompt.
func (f *Flags) auth(env *cli.Env) (etcd.Auth, error) {
	a := f.Conn.Auth
	switch {
	case a.Token != "":
		return etcd.Auth{Token: a.Token}, nil
	case a.User == "":
		return etcd.Auth{}, nil
	case f.PasswordFile == "-":
		password, err := env.ReadLine()
		if err != nil {
			return a, cli.Usage(fmt.Errorf("--password-file: read the password from standard input: %w", err))
		}
		a.Password = password
		return a, nil
	case f.PasswordFile != "":
		b, err := env.ReadFile(f.PasswordFile, cli.MaxSecretFile)
		if err != nil {
			return a, cli.Usage(fmt.Errorf("--password-file: %w", err))
		}
		a.Password = strings.TrimRight(string(b), "\r\n")
		return a, nil
	case a.Password != "":
		return a, nil
	}
	if user, password, ok := strings.Cut(a.User, ":"); ok {
		return etcd.Auth{User: user, Password: password}, nil
	}
	password, err := env.AskPassword("Password: ")
	if err != nil {
		return a, cli.Usage(hint.With(err, "give --password-file, or the variable ETCDKIT_PASSWORD"))
	}
	a.Password = password
	return a, nil
}
