package config

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"go.etcd.io/etcd/client/pkg/v3/srv"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/etcdkit/etcdkit/internal/cli"
	"github.com/etcdkit/etcdkit/internal/etcd"
)

// ErrVariableConflict says that a flag was typed whose variable is set too. The
// log has told the user which.
var ErrVariableConflict = errors.New("variable and flag are both set")

// EmptyFileError says that a certificate flag was typed without a file name.
type EmptyFileError struct{ Flag string }

func (e *EmptyFileError) Error() string {
	return "empty string is passed to --" + e.Flag + " option"
}

// FillUpstream sets the flags of fs from their variables by etcdctl's rules: a
// value that does not parse is dropped, a flag and its variable together are an
// error, any other variable with the prefix earns a warning.
func FillUpstream(fs *pflag.FlagSet, env *cli.Env, log *zap.Logger) error {
	typed, used := map[string]bool{}, map[string]bool{}
	fs.VisitAll(func(flag *pflag.Flag) {
		name := upstreamPrefix + suffix(flag.Name)
		if flag.Changed {
			typed[name] = true
			return
		}
		if value := env.Getenv(name); value != "" {
			used[name] = true
			_ = fs.Set(flag.Name, value) // upstream drops what does not parse
		}
	})
	for _, entry := range env.Environ {
		name, _, ok := strings.Cut(entry, "=")
		switch {
		case !ok:
			warnAt(log, zapcore.WarnLevel, 78, "found invalid environment variable", entry)
		case used[name]:
		case typed[name]:
			warnAt(log, zapcore.FatalLevel, 86, "conflicting environment variable is shadowed by corresponding command-line flag "+
				"(either unset environment variable or disable flag))", name)
			return ErrVariableConflict
		case strings.HasPrefix(name, upstreamPrefix):
			warnAt(log, zapcore.WarnLevel, 94, "unrecognized environment variable", redactEntry(entry))
		}
	}
	return nil
}

// warnAt writes an entry at a level that would end the process if the logger
// was asked to write it. Its caller is the line of upstream's that writes it.
func warnAt(log *zap.Logger, level zapcore.Level, line int, msg, variable string) {
	entry := zapcore.Entry{Level: level, Time: time.Now(), Message: msg, Caller: zapcore.NewEntryCaller(0, "flags/flag.go", line, true)}
	if level >= zap.ErrorLevel {
		entry.Stack = zap.Stack("").String // upstream shows where it gave up
	}
	_ = log.Core().Write(entry, []zapcore.Field{zap.String("environment-variable", variable)})
}

// redactEntry hides the value of a variable that is named like a secret flag.
func redactEntry(entry string) string {
	name, value, _ := strings.Cut(entry, "=")
	flag := strings.ToLower(strings.ReplaceAll(strings.TrimPrefix(name, upstreamPrefix), "_", "-"))
	return name + "=" + redactValue(flag, value)
}

// Dump writes the values of all flags of fs by variable name, as etcdctl's
// --debug does, but for secrets.
func Dump(w io.Writer, fs *pflag.FlagSet) {
	fs.VisitAll(func(flag *pflag.Flag) {
		fmt.Fprintf(w, "%s%s=%s\n", upstreamPrefix, suffix(flag.Name), redactValue(flag.Name, flag.Value.String()))
	})
}

// redactValue hides what is secret in the value of a flag.
func redactValue(flag, value string) string {
	user, _, hasPassword := strings.Cut(value, ":")
	switch {
	case flag == "endpoints":
		return strings.Join(etcd.Shown(strings.Split(value, ",")), ",")
	case value == "" || !Secret(flag), secretURL(flag) && isReference(value):
		return value
	case strings.HasSuffix(flag, "user") && hasPassword:
		return user + ":<redacted>"
	case strings.HasSuffix(flag, "user"):
		return value
	}
	return "<redacted>"
}

// UpstreamConnection returns how to connect by etcdctl's rules. typed tells
// whether a flag was typed. FillUpstream comes first.
func (f *Flags) UpstreamConnection(typed func(flag string) bool, env *cli.Env) (etcd.Config, error) {
	c := f.Conn
	eps, err := f.upstreamEndpoints(env.Err)
	if err != nil {
		return c, err
	}
	c.Endpoints = eps
	for _, file := range []struct{ flag, path string }{{"cert", c.TLS.Cert}, {"key", c.TLS.Key}, {"cacert", c.TLS.CACert}} {
		if file.path == "" && typed(file.flag) {
			return c, &EmptyFileError{file.flag}
		}
	}
	if !f.InsecureDiscovery {
		c.TLS.ServerName = f.DiscoverySRV
	}
	c.Auth, err = UpstreamAuth(c.Auth, "Password: ", env)
	return c, err
}

// upstreamEndpoints returns the endpoints found by SRV records, else those of
// --endpoints.
func (f *Flags) upstreamEndpoints(notes io.Writer) ([]string, error) {
	var eps []string
	if f.DiscoverySRV != "" {
		clients, err := srv.GetClient("etcd-client", f.DiscoverySRV, f.DiscoverySRVName)
		if err != nil {
			return nil, err
		}
		for _, ep := range clients.Endpoints {
			if !f.InsecureDiscovery && strings.HasPrefix(ep, "http://") {
				fmt.Fprintf(notes, "ignoring discovered insecure endpoint %q\n", ep)
				continue
			}
			eps = append(eps, ep)
		}
	}
	if len(eps) > 0 {
		return eps, nil
	}
	for _, ep := range f.Conn.Endpoints {
		eps = append(eps, strings.TrimSpace(ep))
	}
	return eps, nil
}

// UpstreamAuth completes what the flags say about a user: the token wins, the
// password may follow the name after a colon, else it is asked for.
func UpstreamAuth(a etcd.Auth, prompt string, env *cli.Env) (etcd.Auth, error) {
	switch {
	case a.Token != "":
		return etcd.Auth{Token: a.Token}, nil
	case a.User == "":
		return etcd.Auth{}, nil
	case a.Password != "":
		return a, nil
	}
	if user, password, ok := strings.Cut(a.User, ":"); ok {
		return etcd.Auth{User: user, Password: password}, nil
	}
	password, err := env.PromptPassword(prompt)
	a.Password = password
	return a, err
}
