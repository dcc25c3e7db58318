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

func writeConfigAt(t *testing.T, path, text string) string {
	t.Helper()
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
		"a variable beats the file": {[]string{"--config", path}, []string{"ETCDCTL_DIAL_TIMEOUT=9s"}, func(f *config.Flags) {
			f.ConfigFile, f.Conn.DialTimeout = path, 9*time.Second
			f.Conn.Endpoints, f.Conn.TLS.CACert = []string{"https://lab-1:2379", "https://lab-2:2379"}, "/lab/ca.crt"
		}},
		"a typed context beats the variables that name a cluster": {
			[]string{"--config", path, "--context=lab"},
			[]string{"ETCDCTL_ENDPOINTS=https://other:2379", "ETCDKIT_CACERT=/other/ca.crt", "ETCDKIT_USER=root:x", "ETCDCTL_DIAL_TIMEOUT=9s"},
			func(f *config.Flags) {
				f.ConfigFile, f.Context, f.Conn.DialTimeout = path, "lab", 9*time.Second
				f.Conn.Endpoints, f.Conn.TLS.CACert = []string{"https://lab-1:2379", "https://lab-2:2379"}, "/lab/ca.crt"
			},
		},
		"a typed flag beats the context": {[]string{"--config", path, "--context=lab", "--endpoints=https://lab-3:2379"}, nil, func(f *config.Flags) {
			f.ConfigFile, f.Context = path, "lab"
			f.Conn.Endpoints, f.Conn.TLS.CACert = []string{"https://lab-3:2379"}, "/lab/ca.crt"
		}},
		"a variable may pick from the context's endpoints": {[]string{"--config", path}, []string{"ETCDKIT_ENDPOINTS=https://lab-2:2379"}, func(f *config.Flags) {
			f.ConfigFile = path
			f.Conn.Endpoints, f.Conn.TLS.CACert = []string{"https://lab-2:2379"}, "/lab/ca.crt"
		}},
		"a variable may hold the password of the context's user": {
			[]string{"--config", writeConfigAt(t, path+".user", "contexts: {a: {endpoints: [a:1], user: ops}}"), "--context=a"},
			[]string{"ETCDKIT_PASSWORD=p"},
			func(f *config.Flags) {
				f.ConfigFile, f.Context, f.Conn.Endpoints = path+".user", "a", []string{"a:1"}
				f.Conn.Auth.User, f.Conn.Auth.Password = "ops", "p"
			},
		},
		"variables alone make no mixture": {
			[]string{"--config", writeConfigAt(t, path+".one", "context: a\ncontexts: {a: {endpoints: [a:1]}}")},
			[]string{"ETCDKIT_ENDPOINTS=b:1", "ETCDKIT_CACERT=/b"},
			func(f *config.Flags) {
				f.ConfigFile, f.Conn.Endpoints, f.Conn.TLS.CACert = path+".one", []string{"b:1"}, "/b"
			},
		},
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
		"a folder":                                   {[]string{"--config=" + t.TempDir()}, nil, "not a regular file", ""},
		"a device that never ends":                   {[]string{"--config=/dev/zero"}, nil, "not a regular file", ""},
		"a file of a film's size":                    {[]string{"--config=" + writeConfig(t, strings.Repeat("# a\n", 1<<19))}, nil, "too many for a configuration file", ""},
		"a context that does not exist":              {[]string{"--context=x", "--config=" + writeConfig(t, file)}, nil, `context "x" is not in`, "lab"},
		"a context in another case":                  {[]string{"--context=LAB", "--config=" + writeConfig(t, file)}, nil, `context "LAB" is not in`, "did you mean lab?"},
		"a context without a file":                   {[]string{"--context=x"}, []string{"HOME=/nonexistent"}, "no configuration file", "--config"},
		"an endpoint of one cluster and the certificate of another": {
			[]string{"--config=" + writeConfig(t, file)},
			[]string{"ETCDCTL_ENDPOINTS=https://other:2379"},
			"settings of two clusters are mixed: ETCDCTL_ENDPOINTS", "--context lab",
		},
		"a certificate of another cluster": {
			[]string{"--config=" + writeConfig(t, file)},
			[]string{"ETCDKIT_CACERT=/other"},
			"settings of two clusters are mixed: ETCDKIT_CACERT", "unset ETCDKIT_CACERT",
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := fill(t, tc.args, tc.environ)
			if err == nil || !strings.Contains(err.Error(), tc.want) || !strings.Contains(hint.Of(err), tc.hint) {
				t.Errorf("got %v with hint %q; want %q with hint %q", err, hint.Of(err), tc.want, tc.hint)
			}
		})
	}
}

// What is not understood is refused, with its line: a setting that is dropped
// leads to another cluster.
func TestTheFileIsReadStrictly(t *testing.T) {
	for name, tc := range map[string]struct{ text, want, hint string }{
		"not YAML":                           {"contexts:\n  a: [", "line 2: did not find expected node content", ""},
		"not a mapping":                      {"- a", "line 1: the file: want a mapping of names to values, got a list", ""},
		"an unknown key":                     {"\ncontex: a", `line 2: unknown key "contex"`, "did you mean context?"},
		"a second document":                  {"context: a\n---\ncontext: b", "line 2: a second YAML document begins", ""},
		"a key twice":                        {"context: a\ncontext: b", `line 2: mapping key "context" already defined at line 1`, ""},
		"a context that is a text":           {"contexts:\n  prod: https://10.0.0.1:2379", "line 2: context prod: want a mapping of names to values, got a single value", ""},
		"contexts in a list":                 {"contexts:\n- a", "line 2: contexts: want a mapping of names to values, got a list", ""},
		"a context of nothing":               {"contexts:\n  a:", "line 2: context a: want a mapping of names to values, got nothing", ""},
		"an empty context":                   {"contexts:\n  a: {}", "line 2: context a does not say where its cluster is", "add endpoints"},
		"a context without endpoints":        {"contexts:\n  a:\n    cacert: /ca", "context a does not say where its cluster is", "add endpoints"},
		"endpoints of nothing":               {"contexts:\n  a:\n    endpoints:", "line 3: context a: endpoints has no value", ""},
		"an empty list of endpoints":         {"contexts:\n  a:\n    endpoints: []", "line 3: context a: endpoints is an empty list", ""},
		"an empty endpoint":                  {"contexts:\n  a:\n    endpoints: [b, '']", "line 3: context a: endpoints has no value", ""},
		"an empty endpoint between commas":   {"contexts:\n  a:\n    endpoints: 'b,,c'", "line 3: context a: endpoints: an item of the list is empty", ""},
		"an endpoint that is a list":         {"contexts:\n  a:\n    endpoints: [[b]]", "line 3: context a: endpoints: want one value, got a list", ""},
		"words joined otherwise":             {"contexts: {a: {endpoints: b, dial_timeout: 3s}}", `line 1: context a: unknown setting "dial_timeout"`, "did you mean dial-timeout?"},
		"a setting that is like none":        {"contexts: {a: {endpoints: b, colour: red}}", `unknown setting "colour"`, "named like the connection flags"},
		"a setting that is almost one":       {"contexts: {a: {endpoint: b}}", `unknown setting "endpoint"`, "endpoints"},
		"a setting that widens an effect":    {"contexts: {a: {endpoints: b, yes: true}}", `unknown setting "yes"`, ""},
		"a value that is not a duration":     {"contexts: {a: {endpoints: b, dial-timeout: soon}}", "line 1: context a: dial-timeout: ", ""},
		"a list where one value belongs":     {"contexts: {a: {endpoints: b, cacert: [b, c]}}", "context a: cacert: want one value, got a list", ""},
		"a repository in a text":             {"repositories: {main: 's3://b/'}", "line 1: repository main: want a mapping of names to values, got a single value", ""},
		"a repository without url":           {"repositories:\n  main: {region: a}", "line 2: repository main has no url", ""},
		"a repository with an unknown key":   {"repositories: {main: {url: 's3://b/', endpont: x}}", `repository main: unknown key "endpont"`, "did you mean endpoint?"},
		"a repository's key in another case": {"repositories: {main: {url: 's3://b/', keeplast: 3}}", `repository main: unknown key "keeplast"`, "did you mean keepLast?"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := fill(t, []string{"--config=" + writeConfig(t, tc.text)}, nil)
			if err == nil || !strings.Contains(err.Error(), tc.want) || !strings.Contains(err.Error(), "configuration file /") || !strings.Contains(hint.Of(err), tc.hint) {
				t.Errorf("got %v with hint %q; want %q with hint %q", err, hint.Of(err), tc.want, tc.hint)
			}
		})
	}
}

func TestNamesOfContextsKeepTheirCase(t *testing.T) {
	path := writeConfig(t, "contexts: {prod: {endpoints: [small:1]}, Prod: {endpoints: [large:1]}}")
	for name, want := range map[string]string{"prod": "small:1", "Prod": "large:1"} {
		f, err := fill(t, []string{"--config", path, "--context", name}, nil)
		if err != nil || f.Conn.Endpoints[0] != want {
			t.Errorf("context %s: got %v, %v; want %s", name, f.Conn.Endpoints, err, want)
		}
	}
}

func TestAnchorsAndMergesWork(t *testing.T) {
	path := writeConfig(t, "context: b\ncontexts:\n  a: &a {endpoints: [a:1], cacert: /ca}\n  b:\n    <<: *a\n    endpoints: [b:1]")
	f, err := fill(t, []string{"--config", path}, nil)
	if err != nil || f.Conn.Endpoints[0] != "b:1" || f.Conn.TLS.CACert != "/ca" {
		t.Errorf("got %v, %q, %v", f.Conn.Endpoints, f.Conn.TLS.CACert, err)
	}
}

// A default file that may not be read, as the one of the user who called sudo,
// is ignored with a warning. One that was asked for is an error.
func TestAnUnreadableDefaultFileIsAWarning(t *testing.T) {
	home := t.TempDir()
	dir := filepath.Join(home, ".config", "etcdkit")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "config.yaml")
	if err := os.WriteFile(path, []byte("context: a"), 0o000); err != nil {
		t.Fatal(err)
	}
	if _, err := os.ReadFile(path); err == nil {
		t.Skip("this user may read every file")
	}
	f, err := fill(t, nil, []string{"HOME=" + home})
	if err != nil || len(f.File.Warnings) != 1 || !strings.Contains(f.File.Warnings[0], "permission denied") {
		t.Errorf("got %v and warnings %q", err, f.File.Warnings)
	}
	if _, err := fill(t, []string{"--config", path}, nil); err == nil {
		t.Error("the file was asked for, and its absence was no error")
	}
}

func TestUnsafeFilesEarnAWarning(t *testing.T) {
	for name, tc := range map[string]struct {
		text string
		mode os.FileMode
		want string
	}{
		"a password in clear":           {"contexts: {a: {endpoints: b, user: root, password: hunter2}}", 0o600, "line 1: context a: password holds a password in clear"},
		"a password behind a name":      {"contexts: {a: {endpoints: b, user: 'root:hunter2'}}", 0o600, "context a: user holds a password in clear"},
		"a reference":                   {"contexts: {a: {endpoints: b, user: root, password: 'env:PW'}}", 0o600, ""},
		"a file that others can change": {"contexts: {a: {endpoints: b}}", 0o666, "can be written by other users (mode 0666)"},
	} {
		t.Run(name, func(t *testing.T) {
			path := writeConfig(t, tc.text)
			if err := os.Chmod(path, tc.mode); err != nil {
				t.Fatal(err)
			}
			f, err := fill(t, []string{"--config", path}, nil)
			got := strings.Join(f.File.Warnings, "\n")
			if err != nil || (got == "") != (tc.want == "") || !strings.Contains(got, tc.want) || strings.Contains(got, "hunter") {
				t.Errorf("got %v and %q, want %q", err, got, tc.want)
			}
		})
	}
}

func TestASecretIsNotInTheError(t *testing.T) {
	path := writeConfig(t, "context: a\ncontexts: {a: {endpoints: b, password: [hunter2, hunter3]}}")
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
			path := writeConfig(t, "context: a\ncontexts: {a: {endpoints: b, user: root, password: '"+tc.password+"'}}")
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
	path := writeConfig(t, "context: a\ncontexts: {a: {endpoints: b, cacert: /ca, password: hunter2}}")
	var f config.Flags
	fs := pflag.NewFlagSet("test", pflag.ContinueOnError)
	f.Bind(fs, cli.Native)
	if err := fs.Parse([]string{"--config", path, "--endpoints=a:1", "--user=root:hunter3"}); err != nil {
		t.Fatal(err)
	}
	if err := f.Fill(fs, &cli.Env{Environ: []string{"ETCDCTL_KEEPALIVE_TIME=7s"}}); err != nil {
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
		"endpoints":      {Name: "endpoints", Value: "[a:1]", Source: "flag"},
		"keepalive-time": {Name: "keepalive-time", Value: "7s", Source: "variable ETCDCTL_KEEPALIVE_TIME"},
		"cacert":         {Name: "cacert", Value: "/ca", Source: "configuration file"},
		"dial-timeout":   {Name: "dial-timeout", Value: "2s", Source: "default"},
		"password":       {Name: "password", Value: "<redacted>", Source: "configuration file"},
		"user":           {Name: "user", Value: "root:<redacted>", Source: "flag"},
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
