package commands_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/etcdkit/etcdkit/commands"
	"github.com/etcdkit/etcdkit/internal/cli"
	"github.com/etcdkit/etcdkit/internal/embedded"
	"github.com/etcdkit/etcdkit/internal/testing/certs"
	"github.com/etcdkit/etcdkit/internal/testing/etcdtest"
)

// run runs a program in this process.
func run(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	env := &cli.Env{
		In: strings.NewReader(""), Out: &out, Err: &errs, Now: time.Now,
		Environ: []string{"HOME=" + t.TempDir(), "XDG_STATE_HOME=" + t.TempDir()},
	}
	code = commands.Main(t.Context(), args, env)
	return code, out.String(), errs.String()
}

// etcd-io/etcd#9619, #10087, #14324: upstream ends each of these in
// "context deadline exceeded" after its timeout, which is long here on purpose:
// a diagnosis that waited for it would fail the test.
func TestTLSMistakesAreNamed(t *testing.T) {
	t.Parallel()
	ca, other := certs.NewCA(t), certs.NewCA(t)
	client, stranger, expired := ca.Client(t, "alice"), other.Client(t, "mallory"), ca.Expired(t)
	secure, mutual := etcdtest.Start(t, embedded.Options{Configure: etcdtest.TLS(t, ca, false)}).Endpoints()[0],
		etcdtest.Start(t, embedded.Options{Configure: etcdtest.TLS(t, ca, true)}).Endpoints()[0]
	plain := etcdtest.Start(t, embedded.Options{}).Endpoints()[0]
	for name, tc := range map[string]struct {
		flags []string
		want  []string
	}{
		"the right CA":                  {[]string{"--endpoints", secure, "--cacert", ca.File}, nil},
		"the right client certificate":  {[]string{"--endpoints", mutual, "--cacert", ca.File, "--cert", client.CertFile, "--key", client.KeyFile}, nil},
		"nothing is verified":           {[]string{"--endpoints", secure, "--insecure-skip-tls-verify", "--insecure-transport=false"}, nil},
		"no CA":                         {[]string{"--endpoints", secure}, []string{"not trusted", "--cacert"}},
		"the wrong CA":                  {[]string{"--endpoints", secure, "--cacert", other.File}, []string{"not trusted", other.File + " is not the CA"}},
		"no client certificate":         {[]string{"--endpoints", mutual, "--cacert", ca.File}, []string{"wants a client certificate", "--cert and --key"}},
		"a stranger's certificate":      {[]string{"--endpoints", mutual, "--cacert", ca.File, "--cert", stranger.CertFile, "--key", stranger.KeyFile}, []string{"refuses the client certificate", "check --cert and --key"}},
		"an expired certificate":        {[]string{"--endpoints", mutual, "--cacert", ca.File, "--cert", expired.CertFile, "--key", expired.KeyFile}, []string{"refuses the client certificate", "expired"}},
		"http at an https port":         {[]string{"--endpoints", strings.Replace(secure, "https", "http", 1)}, []string{"speaks TLS", "use https://"}},
		"https at an http port":         {[]string{"--endpoints", strings.Replace(plain, "http", "https", 1), "--cacert", ca.File}, []string{"does not speak TLS", "use http://"}},
		"a CA for a port without TLS":   {[]string{"--endpoints", strings.TrimPrefix(plain, "http://"), "--cacert", ca.File}, []string{"does not speak TLS", "without --cacert"}},
		"a certificate that is no file": {[]string{"--endpoints", secure, "--cacert", "/no/such/ca.pem"}, []string{"--cacert", "no such file"}},
		"a certificate without its key": {[]string{"--endpoints", secure, "--cert", client.CertFile}, []string{"--cert and --key go together"}},
	} {
		t.Run(name, func(t *testing.T) {
			start := time.Now()
			args := append([]string{"etcdkit", "--command-timeout=2m", "get", "a"}, tc.flags...)
			code, _, stderr := run(t, args...)
			if (code == 0) != (tc.want == nil) {
				t.Errorf("exit code %d, standard error\n%s", code, stderr)
			}
			for _, want := range tc.want {
				if !strings.Contains(stderr, want) {
					t.Errorf("standard error lacks %q:\n%s", want, stderr)
				}
			}
			if took := time.Since(start); took > time.Minute {
				t.Errorf("took %s, as long as the command's timeout lets it", took)
			}
		})
	}
}

func TestAnEndpointThatIsNoneIsWrongUsageAndShowsNoPassword(t *testing.T) {
	t.Parallel()
	for endpoints, want := range map[string]string{
		"":                              "no endpoint given",
		"127.0.0.1:1,":                  `malformed endpoint ""`,
		"ftp://127.0.0.1:1":             "ftp is none of http, https, unix and unixs",
		"localhost":                     `malformed endpoint "localhost"`,
		"http://":                       `malformed endpoint "http://"`,
		"https://u:hunter2@a.invalid:1": "an endpoint has a user's name in it",
		"u:hunter2@a.invalid:1":         "an endpoint has a user's name in it",
	} {
		state := t.TempDir()
		var errs bytes.Buffer
		env := &cli.Env{In: strings.NewReader(""), Out: &errs, Err: &errs, Now: time.Now, Environ: []string{"XDG_STATE_HOME=" + state}}
		code := commands.Main(t.Context(), []string{"etcdkit", "put", "a", "b", "--endpoints", endpoints}, env)
		journal, err := os.ReadFile(filepath.Join(state, "etcdkit", "journal.jsonl"))
		if err != nil || code != 2 || !strings.Contains(errs.String(), want) || !strings.Contains(errs.String(), "hint: ") {
			t.Errorf("%q: %v, exit code %d, want 2, %q and a hint:\n%s", endpoints, err, code, want, errs.String())
		}
		if strings.Contains(errs.String()+string(journal), "hunter2") {
			t.Errorf("%q: the password is shown:\n%s%s", endpoints, errs.String(), journal)
		}
	}
}

// A range is asked for as everything else is: the request waits for a
// connection, instead of failing and being tried again until its timeout.
func TestARangeWaitsForAConnection(t *testing.T) {
	t.Parallel()
	for _, flag := range []string{"--prefix", "--stream"} {
		_, _, stderr := run(t, "etcdctl", "--endpoints=127.0.0.1:1", "--command-timeout=2s", "get", "a", flag)
		if tries := strings.Count(stderr, "retrying of unary invoker"); tries > 1 || !strings.HasSuffix(stderr, "Error: context deadline exceeded\n") {
			t.Errorf("%s: tried %d times:\n%s", flag, tries, stderr)
		}
	}
}

// etcd-io/etcd PR #13138: the client library's warnings clutter standard
// error, in JSON.
func TestRetriesAreNotLogged(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		program string
		flags   []string
		logged  bool
	}{
		"quiet by default":           {"etcdkit", nil, false},
		"with --debug":               {"etcdkit", []string{"--debug"}, true},
		"under upstream's name, too": {"etcdctl", nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, stderr := run(t, append([]string{tc.program, "--endpoints=127.0.0.1:1", "--command-timeout=2s", "put", "a", "b"}, tc.flags...)...)
			if logged := strings.Contains(stderr, "retrying of unary invoker"); logged != tc.logged {
				t.Errorf("logged %v, want %v:\n%s", logged, tc.logged, stderr)
			}
		})
	}
}
