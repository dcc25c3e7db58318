package config

import (
	"strings"

	"github.com/spf13/pflag"

	"github.com/etcdkit/etcdkit/internal/etcd"
)

// repeated are the flags that decide which cluster a command reaches, and as
// whom, in the order in which a next step shows them.
func repeated() []string {
	return []string{
		"config", "context", "discover", "endpoints", "resolve", "discovery-srv", "discovery-srv-name", "insecure-discovery",
		"cacert", "cert", "key", "insecure-transport", "insecure-skip-tls-verify", "user", "password-file", "expect-cluster-id",
	}
}

// ConnectionArgs returns the arguments with which another command reaches the
// same cluster as this one: the connection flags that were typed or set by a
// variable. What the configuration file and discovery add, they add again. A
// password is never among them. Fill comes first.
func (f *Flags) ConnectionArgs() []string {
	if f.filled == nil {
		return nil
	}
	var args []string
	for _, name := range repeated() {
		flag := f.filled.Lookup(name)
		source := f.sources[name]
		if flag == nil || source == "" || source == "configuration file" {
			continue
		}
		if value, ok := repeatedValue(flag); ok {
			args = append(args, "--"+name+"="+value)
		}
	}
	return args
}

// repeatedValue returns the flag's value without secrets, if it can be given
// again: standard input has been read.
func repeatedValue(flag *pflag.Flag) (string, bool) {
	value := flag.Value.String()
	if list, ok := flag.Value.(pflag.SliceValue); ok {
		value = strings.Join(list.GetSlice(), ",")
	}
	switch {
	case flag.Name == "endpoints":
		value = strings.Join(etcd.Shown(strings.Split(value, ",")), ",")
	case flag.Name == "user":
		value, _, _ = strings.Cut(value, ":")
	case flag.Name == "password-file" && (value == "-" || strings.HasPrefix(value, "/dev/fd/") || strings.HasPrefix(value, "/proc/")):
		return "", false
	}
	return value, value != ""
}
