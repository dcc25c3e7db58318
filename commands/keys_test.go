package commands_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/etcdkit/etcdkit/commands"
	"github.com/etcdkit/etcdkit/internal/cli"
	"github.com/etcdkit/etcdkit/internal/embedded"
	"github.com/etcdkit/etcdkit/internal/testing/etcdtest"
)

// The tests that name a report replay it; docs/differences.md has what became of
// each.

// session runs command lines against one cluster, in this process.
type session struct {
	t        *testing.T
	endpoint string
	client   *clientv3.Client
	stdin    io.Reader
	environ  []string
}

func newSession(t *testing.T) *session {
	c := etcdtest.Start(t, embedded.Options{Members: 1})
	return &session{t: t, endpoint: c.Endpoints()[0], client: etcdtest.Client(t, c.Endpoints()...)}
}

type outcome struct {
	code     int
	out, err string
}

// lockedBuffer may be read while a command writes it.
type lockedBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

// run runs a command line to its end.
func (s *session) run(args ...string) outcome {
	var out lockedBuffer
	return s.runIn(s.t.Context(), &out, args...)
}

func (s *session) runIn(ctx context.Context, out *lockedBuffer, args ...string) outcome {
	s.t.Helper()
	var errs lockedBuffer
	stdin := s.stdin
	if stdin == nil {
		stdin = strings.NewReader("")
	}
	env := &cli.Env{
		In: stdin, Out: out, Err: &errs, Now: time.Now,
		Environ: append([]string{"HOME=" + s.t.TempDir(), "PATH=" + os.Getenv("PATH"), "ETCDCTL_ENDPOINTS=" + s.endpoint, "ETCDCTL_COMMAND_TIMEOUT=" + patience}, s.environ...),
	}
	code := commands.Main(ctx, append([]string{"etcdkit"}, args...), env)
	return outcome{code, out.String(), errs.String()}
}

// want runs a command line and compares its exit code and output.
func (s *session) want(code int, out string, args ...string) {
	s.t.Helper()
	if got := s.run(args...); got.code != code || got.out != out {
		s.t.Errorf("%q: exit %d, output %q, errors %q; want exit %d, output %q", args, got.code, got.out, got.err, code, out)
	}
}

func (s *session) put(key, value string) {
	s.t.Helper()
	if _, err := s.client.Put(s.t.Context(), key, value); err != nil {
		s.t.Fatal(err)
	}
}

// etcd-io/etcd#13709
func TestHexJSONIsJSON(t *testing.T) {
	s := newSession(t)
	s.put("a", "1")
	for _, args := range [][]string{{"get", "a"}, {"put", "a", "2", "--prev-kv"}, {"lease", "grant", "60"}, {"lease", "list"}, {"del", "a"}} {
		got := s.run(append(args, "--hex", "-w", "json")...)
		if !json.Valid([]byte(got.out)) {
			t.Errorf("%q: no JSON: %s", args, got.out)
		}
	}
}

// etcd-io/etcd#20118, #14640
func TestAFlagBeatsItsVariable(t *testing.T) {
	s := newSession(t)
	s.environ = []string{"ETCDCTL_ENDPOINTS=127.0.0.1:1", "ETCDCTL_WRITE_OUT=json", "ETCDCTL_API=3", "ETCDCTL_NO_SUCH=1"}
	s.put("a", "1")
	got := s.run("get", "a", "--endpoints", s.endpoint, "-w", "simple")
	if want := (outcome{0, "a\n1\n", ""}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

// etcd-io/etcd#6234, #10102
func TestRawIsByteExact(t *testing.T) {
	s := newSession(t)
	var all []byte
	for i := range 1000 {
		all = append(all, byte(i))
	}
	s.stdin = bytes.NewReader(all)
	s.want(0, "OK\n", "put", "bytes")
	s.want(0, string(all), "get", "bytes", "--raw")
	s.want(0, "bytes\x00"+string(all)+"\x00", "get", "bytes", "--null")
}

// etcd-io/etcd#5611
func TestKeysOnlyPrintsAKeyALine(t *testing.T) {
	s := newSession(t)
	s.put("a", "1")
	s.put("b", "2")
	s.want(0, "a\nb\n", "get", "", "--prefix", "--keys-only")
}

// etcd-io/etcd#12591, #6480
func TestTextBesideBase64(t *testing.T) {
	s := newSession(t)
	s.put("a", "é")
	s.put("b", "\xff")
	got := s.run("get", "", "--prefix", "-w", "json", "--text")
	var doc struct {
		Kvs []map[string]any `json:"kvs"`
	}
	if err := json.Unmarshal([]byte(got.out), &doc); err != nil {
		t.Fatal(err)
	}
	_, binary := doc.Kvs[1]["value_text"]
	if doc.Kvs[0]["value_text"] != "é" || doc.Kvs[1]["key_text"] != "b" || binary {
		t.Errorf("got %s", got.out)
	}
}

// etcd-io/etcd#10169
func TestTxnValuesHoldNewlines(t *testing.T) {
	s := newSession(t)
	s.stdin = strings.NewReader("mod(\"a\") = \"0\"\n\nput a \"one\n\ntwo\"\n\n\n")
	s.want(0, "SUCCESS\n\nOK\n", "txn")
	s.want(0, "one\n\ntwo", "get", "a", "--raw")
	s.stdin = strings.NewReader("val(\"a\") = \"one\n\ntwo\"\n\nget a --print-value-only\n\n\n")
	s.want(0, "SUCCESS\n\na\none\n\ntwo\n", "txn")
}

// etcd-io/etcd#10169, too: what no shell can spoil.
func TestATxnMayBeJSON(t *testing.T) {
	s := newSession(t)
	txn := func(code int, out, text string) {
		t.Helper()
		s.stdin = strings.NewReader(text)
		s.want(code, out, "txn")
	}
	txn(0, "SUCCESS\n\nOK\n", `{"compare": [{"target": "MOD", "key": "YQ==", "modRevision": "0"}],
		"success": [{"requestPut": {"key": "YQ==", "value": "b25lCnR3bw=="}}], "failure": [{"requestRange": {"key": "YQ=="}}]}`)
	s.want(0, "one\ntwo", "get", "a", "--raw")
	txn(0, "FAILURE\n\na\none\ntwo\n", `{"compare": [{"target": "VALUE", "key": "YQ==", "result": "NOT_EQUAL", "value": "b25lCnR3bw=="}],
		"failure": [{"request_range": {"key": "YQ==", "range_end": "Yg=="}}]}`)
	txn(0, "SUCCESS\n\n1\n", `{"success": [{"requestDeleteRange": {"key": "YQ=="}}]}`)
	for name, text := range map[string]string{
		"cut": `{"compare": [`, "an unknown field": `{"then": []}`, "not base64": `{"success": [{"requestPut": {"key": "?"}}]}`,
		"nothing to compare with": `{"compare": [{"key": "YQ=="}]}`, "another target": `{"compare": [{"key": "YQ==", "target": "LEASE", "version": "1"}]}`,
		"a list that is none": `{"success": [{}]}`,
	} {
		s.stdin = strings.NewReader(text)
		if got := s.run("txn"); got.code != 2 || got.out != "" {
			t.Errorf("%s: %+v, want exit code 2", name, got)
		}
	}
	s.stdin = strings.NewReader(`{"success": [{"requestDeleteRange": {"key": "AA==", "rangeEnd": "AA=="}}]}`)
	if got := s.run("txn"); got.code != 5 {
		t.Errorf("deleting all there is: %+v, want a refusal", got)
	}
}

// etcd-io/etcd#19261
func TestAnUnknownLeaseIsAnError(t *testing.T) {
	s := newSession(t)
	for _, args := range [][]string{{"lease", "timetolive", "123"}, {"lease", "keep-alive", "123"}, {"lease", "keep-alive", "123", "--once"}, {"lease", "revoke", "123"}} {
		if got := s.run(args...); got.code != 1 || got.out != "" || got.err == "" {
			t.Errorf("%q: %+v", args, got)
		}
	}
}

// etcd-io/etcd#6405
func TestAPasswordStaysOutOfTheProcessList(t *testing.T) {
	s := newSession(t)
	etcdtest.EnableAuth(t, s.client, "secret")
	file := filepath.Join(t.TempDir(), "password")
	if err := os.WriteFile(file, []byte("secret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s.want(0, "OK\n", "put", "a", "1", "--user", "root", "--password-file", file)
	s.stdin = strings.NewReader("secret\nvalue\n")
	s.want(0, "OK\n", "put", "a", "--user", "root", "--password-file", "-")
	s.stdin = nil
	s.want(0, "value\n", "get", "a", "--raw", "--user", "root", "--password-file", descriptor(t, "secret\n"))
	if got := s.run("get", "a", "--user", "root", "--password-file", "-"); got.code != 2 {
		t.Errorf("nothing on standard input: %+v", got)
	}
	for _, args := range [][]string{{"--user", "root:hidden", "--debug"}, {"--user", "root", "--password", "hidden", "--debug"}} {
		got := s.run(append([]string{"put", "a", "1"}, args...)...)
		if got.code == 0 || strings.Contains(got.out+got.err, "hidden") {
			t.Errorf("%q: %+v", args, got)
		}
	}
}

// descriptor is a file descriptor that text can be read from, as a file's name.
func descriptor(t *testing.T, text string) string {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	if _, err := w.WriteString(text); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("/dev/fd/%d", r.Fd())
}

// afadesigns/zshellcheck#731
func TestARangeThatIsAllIsNotDeletedUnasked(t *testing.T) {
	s := newSession(t)
	kube := []string{"/registry/namespaces/default", "/registry/pods/default/a", "/registry/secrets/default/b"}
	for _, key := range append(kube, "app/a", "app/b") {
		s.put(key, "1")
	}
	txn := "\ndel /registry/pods/ --prefix\n\n\n"
	for name, tc := range map[string]struct {
		args  []string
		stdin string
	}{
		"an empty prefix":           {[]string{"del", "", "--prefix"}, ""},
		"from the empty key":        {[]string{"del", "", "--from-key"}, ""},
		"from below every key":      {[]string{"del", "!", "--from-key"}, ""},
		"a range around every key":  {[]string{"del", "!", "z"}, ""},
		"Kubernetes' prefix":        {[]string{"del", "/registry", "--prefix"}, ""},
		"a part of it":              {[]string{"del", "/registry/pods/", "--prefix"}, ""},
		"a range around it":         {[]string{"del", "/a", "b"}, ""},
		"one object":                {[]string{"del", kube[1]}, ""},
		"a new object":              {[]string{"put", "/registry/pods/default/new", "x"}, ""},
		"an object from a pipe":     {[]string{"put", kube[1]}, "x"},
		"a transaction from a pipe": {[]string{"txn"}, txn},
	} {
		s.stdin = strings.NewReader(tc.stdin)
		if got := s.run(tc.args...); got.code != 5 || got.out != "" || !strings.Contains(got.err, "--yes") {
			t.Errorf("%s: %+v", name, got)
		}
	}
	s.stdin = nil
	s.want(0, "2\n", "del", "app/", "--prefix")
	s.want(0, "1\n", "del", kube[1], "--yes")
	s.want(0, "2\n", "del", "", "--prefix", "--yes")
	s.put("app/a", "1")
	s.put("app/b", "1")
	for _, args := range [][]string{{"del", "!", "--from-key"}, {"del", "app/", "--prefix"}} {
		if got := s.run(args...); got.code != 5 || !strings.Contains(got.err, "the whole keyspace") {
			t.Errorf("%q, which is every key there is: %+v", args, got)
		}
	}
	s.want(0, "1\n", "del", "app/a")
}

// etcd-io/etcd#12342, #14037, #14809, #7719; make bench has the sizes.
func TestALargeRangeIsShownInEveryFormat(t *testing.T) {
	s := newSession(t)
	etcdtest.Fill(t, s.client, "k", 3000, 100)
	resp, err := s.client.Get(t.Context(), "k", clientv3.WithPrefix(), clientv3.WithKeysOnly())
	if err != nil {
		t.Fatal(err)
	}
	var keys strings.Builder
	for _, kv := range resp.Kvs {
		keys.WriteString(string(kv.Key) + "\n")
	}
	s.want(0, keys.String(), "get", "k", "--prefix", "--keys-only")
	s.want(0, keys.String(), "get", "k", "--prefix", "--keys-only", "--stream")
	got := s.run("get", "k", "--prefix", "-w", "json")
	var doc struct {
		Kvs   []struct{ Key, Value []byte }
		Count int
	}
	if err := json.Unmarshal([]byte(got.out), &doc); err != nil || len(doc.Kvs) != 3000 || doc.Count != 3000 {
		t.Errorf("%d keys, count %d, %v", len(doc.Kvs), doc.Count, err)
	}
}

// etcd-io/etcd PR #10117
func TestALockIsReleased(t *testing.T) {
	s := newSession(t)
	for name, tc := range map[string]struct {
		args []string
		end  func(cancel context.CancelCauseFunc)
		code int
	}{
		"on a signal":                  {[]string{"lock", "l"}, signalled(syscall.SIGTERM), 143},
		"on a dropped terminal":        {[]string{"lock", "l"}, signalled(syscall.SIGHUP), 129},
		"when the session is lost":     {[]string{"lock", "l"}, s.revokeAll, 1},
		"with its command on a signal": {[]string{"lock", "l", "--", "sleep", "600"}, signalled(syscall.SIGTERM), 143},
		"with its command, lost":       {[]string{"lock", "l", "--", "sleep", "600"}, s.revokeAll, 1},
		"and leadership on a signal":   {[]string{"elect", "l", "me"}, signalled(syscall.SIGINT), 130},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancelCause(t.Context())
			done := make(chan outcome, 1)
			go func() { done <- s.runIn(ctx, &lockedBuffer{}, tc.args...) }()
			etcdtest.Until(t, "the lock is held", func(ctx context.Context) bool { return s.count(ctx, "l/") == 1 })
			select {
			case got := <-done:
				t.Fatalf("ended by itself, though the end of standard input means nothing: %+v", got)
			default:
			}
			tc.end(cancel)
			if got := <-done; got.code != tc.code {
				t.Errorf("exit %d, want %d: %s", got.code, tc.code, got.err)
			}
			if n := s.count(t.Context(), "l/"); n != 0 {
				t.Errorf("%d keys of the lock are left", n)
			}
		})
	}
	s.want(7, "", "lock", "l", "--", "sh", "-c", "exit 7")
}

func signalled(number syscall.Signal) func(context.CancelCauseFunc) {
	return func(cancel context.CancelCauseFunc) { cancel(&cli.SignalError{Signal: number}) }
}

func (s *session) count(ctx context.Context, prefix string) int64 {
	resp, err := s.client.Get(ctx, prefix, clientv3.WithPrefix(), clientv3.WithCountOnly())
	if err != nil {
		return -1
	}
	return resp.Count
}

func (s *session) revokeAll(context.CancelCauseFunc) {
	leases, err := s.client.Leases(s.t.Context())
	if err != nil {
		s.t.Error(err)
		return
	}
	for _, l := range leases.Leases {
		if _, err := s.client.Revoke(s.t.Context(), l.ID); err != nil {
			s.t.Error(err)
		}
	}
}

func TestAFormatThatACommandLacksIsRefusedFirst(t *testing.T) {
	s := newSession(t)
	if got := s.run("put", "a", "1", "-w", "nonsense"); got.code != 2 || s.count(t.Context(), "a") != 0 {
		t.Errorf("%+v", got)
	}
}

func TestWatchWritesOneJSONDocumentALine(t *testing.T) {
	s := newSession(t)
	s.put("a", "1")
	s.put("a", "2")
	ctx, cancel := context.WithCancelCause(t.Context())
	done := make(chan outcome, 1)
	var out lockedBuffer
	go func() { done <- s.runIn(ctx, &out, "watch", "a", "--rev", "1", "-w", "json", "--progress-notify") }()
	etcdtest.Until(t, "events were shown", func(context.Context) bool { return strings.Contains(out.String(), "\n") })
	signalled(syscall.SIGINT)(cancel)
	got := <-done
	lines := slices.Collect(strings.Lines(got.out))
	for _, line := range lines {
		if !json.Valid([]byte(line)) {
			t.Errorf("no JSON: %s", line)
		}
	}
	if got.code != 130 || len(lines) == 0 {
		t.Errorf("%+v", got)
	}
}
