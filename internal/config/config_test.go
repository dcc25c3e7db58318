package config_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/spf13/pflag"

	"github.com/etcdkit/etcdkit/internal/cli"
	"github.com/etcdkit/etcdkit/internal/config"
	"github.com/etcdkit/etcdkit/internal/etcd"
	"github.com/etcdkit/etcdkit/internal/hint"
)

const file = `
context: lab
contexts:
  lab:
    endpoints: [https://lab-1:2379, https://lab-2:2379]
    cacert: /lab/ca.crt
  prod.example.com:
    endpoints: https://prod:2379
    command-timeout: 30s
    user: ops
    password-file: /run/secrets/etcd
repositories:
  main: {url: "s3://bucket/etcd/"}
`

func writeConfig(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// fill runs the flags through parsing and filling, as the root command does.
func fill(t *testing.T, args, environ []string) (config.Flags, error) {
	t.Helper()
	var f config.Flags
	fs := pflag.NewFlagSet("test", pflag.ContinueOnError)
	f.Bind(fs, cli.Native)
	if err := fs.Parse(args); err != nil {
		t.Fatal(err)
	}
	err := f.Fill(fs, &cli.Env{Environ: environ})
	return f, err
}

func TestFill(t *testing.T) {
	path := writeConfig(t, file)
	defaults, err := fill(t, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		args, environ []string
		want          func(f *config.Flags)
	}{
		"nothing given leaves the defaults": {nil, nil, func(*config.Flags) {}},
		"etcdctl's variable counts": {nil, []string{"ETCDCTL_ENDPOINTS=a:1, b:2"}, func(f *config.Flags) {
			f.Conn.Endpoints = []string{"a:1", "b:2"}
		}},
		"etcdkit's variable beats etcdctl's": {nil, []string{"ETCDKIT_ENDPOINTS=a:1", "ETCDCTL_ENDPOINTS=b:2"}, func(f *config.Flags) {
			f.Conn.Endpoints = []string{"a:1"}
		}},
		"a flag beats its variable": {[]string{"--endpoints=c:3"}, []string{"ETCDKIT_ENDPOINTS=a:1", "ETCDCTL_API=3"}, func(f *config.Flags) {
			f.Conn.Endpoints = []string{"c:3"}
		}},
		"an empty variable is none": {nil, []string{"ETCDKIT_CACERT="}, func(*config.Flags) {}},
		"what widens an effect has no variable": {
			nil,
			[]string{"ETCDKIT_YES=true", "ETCDKIT_FORCE=true", "ETCDKIT_EXPECT_CLUSTER_ID=1"},
			func(*config.Flags) {},
		},
		"the file's own context is used": {[]string{"--config", path}, nil, func(f *config.Flags) {
			f.ConfigFile = path
			f.Conn.Endpoints, f.Conn.TLS.CACert = []string{"https://lab-1:2379", "https://lab-2:2379"}, "/lab/ca.crt"
		}},
		"another context, with dots in its name": {
			[]string{"--context", "prod.example.com"},
			[]string{"ETCDKIT_CONFIG=" + path},
			func(f *config.Flags) {
				f.ConfigFile, f.Context = path, "prod.example.com"
				f.Conn.Endpoints, f.CommandTimeout = []string{"https://prod:2379"}, 30*time.Second
				f.Conn.Auth.User, f.PasswordFile = "ops", "/run/secrets/etcd"
			},
		},
		"a variable beats the file": {[]string{"--config", path}, []string{"ETCDCTL_CACERT=/mine"}, func(f *config.Flags) {
			f.ConfigFile = path
			f.Conn.Endpoints, f.Conn.TLS.CACert = []string{"https://lab-1:2379", "https://lab-2:2379"}, "/mine"
		}},
	} {
		t.Run(name, func(t *testing.T) {
			want := defaults
			tc.want(&want)
			got, err := fill(t, tc.args, tc.environ)
			if diff := cmp.Diff(want, got, cmpopts.IgnoreUnexported(config.Flags{}), cmpopts.IgnoreFields(config.Flags{}, "File")); err != nil || diff != "" {
				t.Errorf("error %v, flags (-want +got):\n%s", err, diff)
			}
		})
	}
}

func TestFillRefuses(t *testing.T) {
	for name, tc := range map[string]struct {
		args, environ []string
		want, hint    string
	}{
		"a variable that is not a value of its flag": {nil, []string{"ETCDKIT_DIAL_TIMEOUT=soon"}, "variable ETCDKIT_DIAL_TIMEOUT", "--dial-timeout"},
		"a file that is not there":                   {[]string{"--config=/nonexistent.yaml"}, nil, "/nonexistent.yaml", ""},
		"a file that is not YAML":                    {[]string{"--config=" + writeConfig(t, "a: [")}, nil, "configuration file", ""},
		"a key that does not exist":                  {[]string{"--config=" + writeConfig(t, "contex: a")}, nil, `unknown key "contex"`, "did you mean context?"},
		"a setting with its words joined otherwise":  {[]string{"--config=" + writeConfig(t, "contexts: {a: {dial_timeout: 3s}}")}, nil, `context a: unknown setting "dial_timeout"`, "did you mean dial-timeout?"},
		"a setting that is like none":                {[]string{"--config=" + writeConfig(t, "contexts: {a: {colour: red}}")}, nil, `unknown setting "colour"`, "named like the connection flags"},
		"a setting that does not exist":              {[]string{"--config=" + writeConfig(t, "contexts: {a: {endpoint: b}}")}, nil, `unknown setting "endpoint"`, "endpoints"},
		"a setting that widens an effect":            {[]string{"--config=" + writeConfig(t, "contexts: {a: {yes: true}}")}, nil, `unknown setting "yes"`, ""},
		"a context that does not exist":              {[]string{"--context=x", "--config=" + writeConfig(t, file)}, nil, `context "x" is not in`, "lab"},
		"a context without a file":                   {[]string{"--context=x"}, []string{"HOME=/nonexistent"}, "no configuration file", "--config"},
		"a list where one value belongs":             {[]string{"--config=" + writeConfig(t, "context: a\ncontexts: {a: {cacert: [b, c]}}")}, nil, "one value expected", ""},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := fill(t, tc.args, tc.environ)
			if err == nil || !strings.Contains(err.Error(), tc.want) || !strings.Contains(hint.Of(err), tc.hint) {
				t.Errorf("got %v with hint %q; want %q with hint %q", err, hint.Of(err), tc.want, tc.hint)
			}
		})
	}
}

func TestASecretIsNotInTheError(t *testing.T) {
	path := writeConfig(t, "context: a\ncontexts: {a: {password: [hunter2, hunter3]}}")
	_, err := fill(t, []string{"--config", path}, nil)
	if err == nil || strings.Contains(err.Error(), "hunter") {
		t.Errorf("got %v, want an error without the password", err)
	}
}

func TestASecretInTheFileMayBeAReference(t *testing.T) {
	secret := writeConfig(t, "from-file\n")
	for name, tc := range map[string]struct {
		password, want, wantErr string
	}{
		"a file":               {"file:" + secret, "from-file", ""},
		"a variable":           {"env:ETCD_PASSWORD", "from-variable", ""},
		"the secret itself":    {"plain", "plain", ""},
		"a file that is gone":  {"file:/nonexistent", "", "/nonexistent"},
		"a variable not there": {"env:NOSUCH", "", "variable NOSUCH is not set"},
	} {
		t.Run(name, func(t *testing.T) {
			path := writeConfig(t, "context: a\ncontexts: {a: {user: root, password: '"+tc.password+"'}}")
			f, err := fill(t, []string{"--config", path}, []string{"ETCD_PASSWORD=from-variable"})
			if tc.wantErr != "" {
				if err == nil || !strings.Contains(err.Error(), tc.wantErr) {
					t.Errorf("got %v, want %q", err, tc.wantErr)
				}
				return
			}
			if err != nil || f.Conn.Auth.Password != tc.want {
				t.Errorf("got %q, %v; want %q", f.Conn.Auth.Password, err, tc.want)
			}
		})
	}
}

func TestSettingsSayWhereAValueCameFromAndHideSecrets(t *testing.T) {
	path := writeConfig(t, "context: a\ncontexts: {a: {cacert: /ca, password: hunter2}}")
	var f config.Flags
	fs := pflag.NewFlagSet("test", pflag.ContinueOnError)
	f.Bind(fs, cli.Native)
	if err := fs.Parse([]string{"--config", path, "--endpoints=a:1"}); err != nil {
		t.Fatal(err)
	}
	if err := f.Fill(fs, &cli.Env{Environ: []string{"ETCDCTL_KEY=/key", "ETCDKIT_USER=root:hunter3"}}); err != nil {
		t.Fatal(err)
	}
	got := map[string]config.Setting{}
	for _, s := range f.Settings(fs) {
		got[s.Name] = s
		if strings.Contains(s.Value, "hunter") {
			t.Errorf("%s shows a secret", s.Name)
		}
	}
	for name, want := range map[string]config.Setting{
		"endpoints":    {Name: "endpoints", Value: "[a:1]", Source: "flag"},
		"key":          {Name: "key", Value: "/key", Source: "variable ETCDCTL_KEY"},
		"cacert":       {Name: "cacert", Value: "/ca", Source: "configuration file"},
		"dial-timeout": {Name: "dial-timeout", Value: "2s", Source: "default"},
		"password":     {Name: "password", Value: "<redacted>", Source: "configuration file"},
		"user":         {Name: "user", Value: "root:<redacted>", Source: "variable ETCDKIT_USER"},
	} {
		if got[name] != want {
			t.Errorf("%s: got %+v, want %+v", name, got[name], want)
		}
	}
	if _, ok := got["yes"]; ok {
		t.Error("--yes is no setting: only the command line may give it")
	}
}

func TestAuth(t *testing.T) {
	passwordFile := writeConfig(t, "from-file\n")
	for name, tc := range map[string]struct {
		args []string
		want etcd.Auth
	}{
		"nobody":                        {nil, etcd.Auth{}},
		"a user with the password":      {[]string{"--user=root:a:b"}, etcd.Auth{User: "root", Password: "a:b"}},
		"the password apart":            {[]string{"--user=root", "--password=x"}, etcd.Auth{User: "root", Password: "x"}},
		"the password in a file":        {[]string{"--user=root", "--password-file=" + passwordFile}, etcd.Auth{User: "root", Password: "from-file"}},
		"a token wins over a user":      {[]string{"--user=root:x", "--auth-jwt-token=t"}, etcd.Auth{Token: "t"}},
		"a password without its user":   {[]string{"--password=x"}, etcd.Auth{}},
		"a file beats the command line": {[]string{"--user=root", "--password=x", "--password-file=" + passwordFile}, etcd.Auth{User: "root", Password: "from-file"}},
	} {
		t.Run(name, func(t *testing.T) {
			f, err := fill(t, tc.args, nil)
			if err != nil {
				t.Fatal(err)
			}
			conn, err := f.Connection(&cli.Env{})
			if err != nil || conn.Auth != tc.want {
				t.Errorf("got %+v, %v; want %+v", conn.Auth, err, tc.want)
			}
		})
	}
}

func TestWithoutATerminalAMissingPasswordIsAnError(t *testing.T) {
	f, err := fill(t, []string{"--user=root"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	_, err = f.Connection(&cli.Env{TTY: func() (cli.Terminal, error) { return nil, cli.ErrNoTerminal }})
	if err == nil || !strings.Contains(hint.Of(err), "--password-file") {
		t.Errorf("got %v with hint %q, want an error that names --password-file", err, hint.Of(err))
	}
}

func TestSRVDiscoveryOfNoDomainNamesIt(t *testing.T) {
	f, err := fill(t, []string{"--discovery-srv=nosuch.invalid"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err = f.Connection(&cli.Env{}); err == nil || !strings.Contains(err.Error(), "nosuch.invalid") {
		t.Errorf("got %v, want an error that names the domain", err)
	}
}

func TestDiscoveryIsAllOrNothing(t *testing.T) {
	node := fstest.MapFS{}
	for _, file := range []string{"ca.crt", "healthcheck-client.crt", "healthcheck-client.key"} {
		node["etc/kubernetes/pki/etcd/"+file] = &fstest.MapFile{}
	}
	const pki = "/etc/kubernetes/pki/etcd/"
	for name, tc := range map[string]struct {
		args     []string
		environ  []string
		endpoint string
		cert     string
		note     string
	}{
		"nothing is given":            {nil, nil, "https://127.0.0.1:2379", pki + "healthcheck-client.crt", "found kubeadm on this node"},
		"a layout is asked for":       {[]string{"--discover", "kubeadm"}, nil, "https://127.0.0.1:2379", pki + "healthcheck-client.crt", "found kubeadm"},
		"an endpoint is given":        {[]string{"--endpoints", "a:1"}, nil, "a:1", "", ""},
		"a variable names one":        {nil, []string{"ETCDCTL_ENDPOINTS=a:1"}, "a:1", "", ""},
		"a certificate is given":      {[]string{"--cacert", "x"}, nil, "127.0.0.1:2379", "", ""},
		"it is turned off":            {[]string{"--discover", "none"}, nil, "127.0.0.1:2379", "", ""},
		"it is turned off by default": {nil, []string{"ETCDKIT_DISCOVER=none"}, "127.0.0.1:2379", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			f := config.Flags{Root: node}
			fs := pflag.NewFlagSet("", pflag.ContinueOnError)
			f.Bind(fs, cli.Native)
			if err := fs.Parse(tc.args); err != nil {
				t.Fatal(err)
			}
			var stderr strings.Builder
			env := &cli.Env{Err: &stderr, Environ: append(tc.environ, "HOME="+t.TempDir())}
			if err := f.Fill(fs, env); err != nil {
				t.Fatal(err)
			}
			c, err := f.Connection(env)
			if err != nil || c.Endpoints[0] != tc.endpoint || c.TLS.Cert != tc.cert || !strings.Contains(stderr.String(), tc.note) || (tc.note == "") != (stderr.Len() == 0) {
				t.Errorf("endpoint %s with %q, %v, note %q; want %s with %q, %q", c.Endpoints[0], c.TLS.Cert, err, stderr.String(), tc.endpoint, tc.cert, tc.note)
			}
		})
	}
}
