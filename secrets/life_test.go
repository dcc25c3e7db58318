package secrets_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/etcdkit/etcdkit/internal/embedded"
	"github.com/etcdkit/etcdkit/internal/kube"
	"github.com/etcdkit/etcdkit/internal/testing/etcdtest"
	"github.com/etcdkit/etcdkit/internal/testing/reference"
	"github.com/etcdkit/etcdkit/secrets"
)

const (
	inClear   = "k8s\x00\n\x0c\n\x02v1\x12\x06Secret\x12\x10PLAINTEXT-MARKER"
	encrypted = "k8s:enc:aescbc:v1:key1:HIDDEN-MARKER-of-two-16byte-blks" // a whole number of blocks
)

// cluster is a cluster of one embedded member with a keyspace of Kubernetes.
type cluster struct {
	*embedded.Cluster
	client *clientv3.Client
	t      *testing.T
}

func newCluster(t *testing.T) *cluster {
	t.Helper()
	c := etcdtest.Start(t, embedded.Options{})
	k := &cluster{Cluster: c, client: etcdtest.Client(t, c.Endpoints()...), t: t}
	k.put("/registry/namespaces/default", "k8s\x00\n\x0f\n\x02v1\x12\x09Namespace")
	k.put("/registry/configmaps/ns/app", "k8s\x00\n\x0f\n\x02v1\x12\x09ConfigMap")
	return k
}

func (c *cluster) put(key, value string) int64 {
	c.t.Helper()
	resp, err := c.client.Put(c.t.Context(), key, value)
	if err != nil {
		c.t.Fatal(err)
	}
	return resp.Header.Revision
}

func (c *cluster) do(what string, do func(context.Context) error) {
	c.t.Helper()
	if err := do(c.t.Context()); err != nil {
		c.t.Fatalf("%s: %v", what, err)
	}
}

func (c *cluster) compact() {
	c.t.Helper()
	c.do("compact", func(ctx context.Context) error {
		resp, err := c.client.Get(ctx, "x")
		if err != nil {
			return err
		}
		_, err = c.client.Compact(ctx, resp.Header.Revision, clientv3.WithCompactPhysical())
		return err
	})
}

func (c *cluster) defrag() {
	c.t.Helper()
	c.do("defragment", func(ctx context.Context) error {
		_, err := c.client.Defragment(ctx, c.Endpoints()[0])
		return err
	})
}

// scan scans the cluster's live keys and its history.
func (c *cluster) scan() *secrets.Report {
	c.t.Helper()
	r, err := secrets.ScanCluster(c.t.Context(), c.client, secrets.ClusterOptions{
		Options: secrets.Options{Places: []secrets.Place{secrets.Live, secrets.History}},
		Timeout: time.Minute, StallTimeout: time.Minute,
	})
	if err != nil {
		c.t.Fatal(err)
	}
	return r
}

// dataDir scans the data directory of the only member, which may be running.
func (c *cluster) dataDir() *secrets.Report {
	c.t.Helper()
	r, err := secrets.ScanDataDir(c.t.Context(), c.Members[0].DataDir(), secrets.DataDirOptions{})
	if err != nil {
		c.t.Fatal(err)
	}
	return r
}

// stored counts the marker in the member's database and its log, as bytes.
func (c *cluster) stored(marker string) (db, wal int) {
	c.t.Helper()
	count := func(pattern string) (n int) {
		paths, err := filepath.Glob(filepath.Join(c.Members[0].DataDir(), "member", pattern))
		if err != nil || len(paths) == 0 {
			c.t.Fatalf("%s: %v, %d files", pattern, err, len(paths))
		}
		for _, path := range paths {
			data, err := os.ReadFile(path)
			if err != nil {
				c.t.Fatal(err)
			}
			n += bytes.Count(data, []byte(marker))
		}
		return n
	}
	return count("snap/db"), count("wal/*.wal")
}

// outsideFree is counted without free pages: which of those a member wrote
// depends on how its commits fell.
func outsideFree(r *secrets.Report) string {
	before, after, _ := strings.Cut(counted(r), " free ")
	return before + after[strings.Index(after, " "):]
}

// counted returns how many versions in clear a report has in each place.
func counted(r *secrets.Report) string {
	var n [4]int
	for i, p := range secrets.Places() {
		for _, c := range r.Summary {
			if c.Place == p && c.State == secrets.Plain {
				n[i] += c.Count
			}
		}
	}
	return fmt.Sprintf("live %d history %d free %d wal %d", n[0], n[1], n[2], n[3])
}

func (c *cluster) want(step, live, dir string) {
	c.t.Helper()
	if got := counted(c.scan()); got != live {
		c.t.Errorf("%s: the cluster has %s in clear, want %s", step, got, live)
	}
	if got := counted(c.dataDir()); dir != "" && got != dir {
		db, wal := c.stored("PLAINTEXT-MARKER")
		c.t.Errorf("%s: the data directory has %s in clear, want %s; by bytes %d and %d", step, got, dir, db, wal)
	}
}

// canonical/microk8s#2532: what was in clear stays in older revisions
// after the rewrite, then in free pages and the log.
func TestWhatWasInClearLivesOn(t *testing.T) {
	c := newCluster(t)
	c.put("/registry/secrets/ns/a", inClear)
	c.put("/registry/secrets/ns/b", inClear)
	c.put("/registry/secrets/ns/c", encrypted)
	c.want("in clear", "live 2 history 0 free 0 wal 0", "")
	c.put("/registry/secrets/ns/a", encrypted)
	c.do("delete", func(ctx context.Context) error {
		_, err := c.client.Delete(ctx, "/registry/secrets/ns/b")
		return err
	})
	c.want("rewritten and deleted", "live 0 history 2 free 0 wal 0", "")
	c.compact()
	c.put("/registry/configmaps/ns/other", "k8s\x00x") // the file shows a commit late
	c.defragFree(t)
}

// defragFree follows what is left after a compaction.
func (c *cluster) defragFree(t *testing.T) {
	t.Helper()
	etcdtest.Until(t, "the compaction to reach the file", func(context.Context) bool {
		r := c.dataDir()
		return counted(r) == "live 0 history 0 free 2 wal 2"
	})
	if db, wal := c.stored("PLAINTEXT-MARKER"); db == 0 || wal != 2 {
		t.Errorf("the bytes have %d in the database and %d in the log, want some and 2", db, wal)
	}
	c.want("compacted", "live 0 history 0 free 0 wal 0", "")
	c.defrag()
	c.want("defragmented", "live 0 history 0 free 0 wal 0", "live 0 history 0 free 0 wal 2")
	if db, _ := c.stored("PLAINTEXT-MARKER"); db != 0 {
		t.Errorf("the bytes have %d in the database, want none", db)
	}
	c.Members[0].Stop()
	if got := counted(c.dataDir()); got != "live 0 history 0 free 0 wal 2" {
		t.Errorf("stopped: %s", got)
	}
}

// A watch from the compacted revision on does not see what compaction keeps.
func TestHistoryHasWhatCompactionKeeps(t *testing.T) {
	c := newCluster(t)
	written := c.put("/registry/secrets/ns/old", inClear)
	for i := range 5 {
		c.put("/registry/secrets/ns/other", encrypted+strings.Repeat(fmt.Sprint(i), 16))
	}
	c.compact()
	for i := range 5 {
		c.put("/registry/secrets/ns/other", encrypted+strings.Repeat(fmt.Sprint(i), 16))
	}
	c.put("/registry/secrets/ns/old", encrypted)
	r := c.scan()
	want := "secrets live encrypted aescbc key1 2\nsecrets history plain 1\nsecrets history encrypted aescbc key1 5\n"
	if got := summary(r, secrets.Live, secrets.History); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	if got := names(r, secrets.Plain, secrets.History); got != "ns/old" || r.Findings[0].Revision != written {
		t.Errorf("in clear in history: %s at %d, want ns/old at %d", got, r.Findings[0].Revision, written)
	}
}

func TestScanOfAClusterIsPaged(t *testing.T) {
	c := newCluster(t)
	etcdtest.Fill(t, c.client, "/registry/secrets/ns/s-", 1000, 100)
	for i := range 250 {
		c.put(fmt.Sprintf("/registry/secrets/ns/s-%06d", i*4), inClear)
	}
	r, err := secrets.ScanCluster(t.Context(), c.client, secrets.ClusterOptions{BytesPerSecond: 10 << 20})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := summary(r, secrets.Places()...), "secrets live plain 250\nsecrets live unknown 750\n"; got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

// Whoever may read Secrets alone, in an etcd with authentication, can scan them.
func TestScanWithRightsOnSecretsAlone(t *testing.T) {
	c := newCluster(t)
	c.put("/registry/secrets/ns/a", inClear)
	etcdtest.EnableAuth(t, c.client, "root", etcdtest.User{Name: "auditor", Password: "x", Prefix: "/registry/secrets/"})
	auditor := etcdtest.ClientOf(t, clientv3.Config{Endpoints: c.Endpoints(), Username: "auditor", Password: "x"})
	r, err := secrets.ScanCluster(t.Context(), auditor, secrets.ClusterOptions{
		Options: secrets.Options{Prefixes: []string{"/registry"}, Places: []secrets.Place{secrets.Live, secrets.History}}, StallTimeout: time.Minute,
	})
	if err != nil || counted(r) != "live 1 history 0 free 0 wal 0" {
		t.Errorf("%v: %+v", err, r)
	}
	r, err = secrets.ScanCluster(t.Context(), auditor, secrets.ClusterOptions{Options: secrets.Options{Known: []string{"/registry"}}})
	if err != nil || counted(r) != "live 1 history 0 free 0 wal 0" {
		t.Errorf("with a prefix that the node's files tell: %v: %+v", err, r)
	}
	if _, err := secrets.ScanCluster(t.Context(), auditor, secrets.ClusterOptions{}); !errors.Is(err, rpctypes.ErrPermissionDenied) {
		t.Errorf("without a prefix: %v, want permission denied", err)
	}
}

// A prefix that cannot be found by looking is scanned where the node's files
// tell it, and OpenShift's two are found.
func TestPrefixesThatAreKnownOrFound(t *testing.T) {
	c := newCluster(t)
	for _, key := range []string{
		"/kubernetes.io/namespaces/ns", "/kubernetes.io/secrets/ns/a", "/openshift.io/routes/ns/a", "/openshift.io/secrets/ns/b",
		"/a/b/c/d/e/f/secrets/ns/c",
	} {
		c.put(key, inClear)
	}
	for name, tc := range map[string]struct {
		known []string
		want  int
	}{
		"found": {nil, 2},
		"known": {[]string{"/a/b/c/d/e/f", "/kubernetes.io", "/nothing/there"}, 3},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := secrets.ScanCluster(t.Context(), c.client, secrets.ClusterOptions{Options: secrets.Options{Known: tc.known}})
			if got, want := summary(r, secrets.Live), fmt.Sprintf("secrets live plain %d\n", tc.want); err != nil || got != want {
				t.Errorf("%v: got %q, want %q", err, got, want)
			}
		})
	}
}

// OpenShift stores tokens and routes by other names than its API has.
func TestOpenShiftsResourcesAreJudged(t *testing.T) {
	c := newCluster(t)
	for _, key := range []string{
		"/kubernetes.io/namespaces/ns", "/kubernetes.io/secrets/ns/a", "/openshift.io/routes/ns/a", "/openshift.io/oauth/accesstokens/sha256~a",
		"/openshift.io/oauth/authorizetokens/sha256~b", "/openshift.io/oauth/clients/c",
	} {
		c.put(key, inClear)
	}
	config, err := kube.ParseEncryptionConfig([]byte(`apiVersion: apiserver.config.k8s.io/v1
kind: EncryptionConfiguration
resources:
- resources: [secrets, routes.route.openshift.io, oauthaccesstokens.oauth.openshift.io, oauthauthorizetokens.oauth.openshift.io]
  providers:
  - aescbc: {keys: [{name: key1, secret: AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=}]}
`))
	if err != nil {
		t.Fatal(err)
	}
	want := "oauthaccesstokens.oauth.openshift.io live plain 1\noauthauthorizetokens.oauth.openshift.io live plain 1\n" +
		"routes.route.openshift.io live plain 1\nsecrets live plain 1\n"
	r, err := secrets.ScanCluster(t.Context(), c.client, secrets.ClusterOptions{Options: secrets.Options{Config: config}})
	if got := summary(r, secrets.Live); err != nil || got != want {
		t.Errorf("%v: got %q, want %q", err, got, want)
	}
}

func TestEverySupportedVersionIsScanned(t *testing.T) {
	for _, program := range reference.Servers() {
		t.Run(string(program), func(t *testing.T) {
			t.Parallel()
			servers := etcdtest.StartServers(t, etcdtest.ServerOptions{Program: program})
			m := servers.Members[0]
			client := etcdtest.Client(t, servers.Endpoints()...)
			put := func(key, value string) {
				if _, err := client.Put(t.Context(), key, value); err != nil {
					t.Fatal(err)
				}
			}
			put("/registry/namespaces/ns", "k8s\x00x")
			put("/registry/secrets/ns/old", inClear)
			if _, err := client.Compact(t.Context(), 3, clientv3.WithCompactPhysical()); err != nil {
				t.Fatal(err)
			}
			put("/registry/secrets/ns/old", encrypted)
			put("/registry/secrets/ns/new", inClear)
			r, err := secrets.ScanCluster(t.Context(), client, secrets.ClusterOptions{
				Options: secrets.Options{Places: []secrets.Place{secrets.Live, secrets.History}}, StallTimeout: time.Minute,
			})
			if err != nil || counted(r) != "live 1 history 1 free 0 wal 0" {
				t.Errorf("live: %v, %+v", err, r)
			}
			m.Stop()
			r, err = secrets.ScanDataDir(t.Context(), m.DataDir, secrets.DataDirOptions{Options: secrets.Options{Places: []secrets.Place{secrets.Live, secrets.History, secrets.WAL}}})
			if err != nil || counted(r) != "live 1 history 1 free 0 wal 2" || r.DamageCount > 0 {
				t.Errorf("data directory: %v, %+v", err, r)
			}
		})
	}
}

func TestAllAreCountedThoughNotAllAreNamed(t *testing.T) {
	c := newCluster(t)
	for i := range 30 {
		c.put(fmt.Sprintf("/registry/secrets/ns/s-%d", i%20), inClear)
	}
	opts := secrets.Options{MostNamed: 5}
	check := func(source string, r *secrets.Report, err error, want string, named, rest int) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		if got := counted(r); got != want || len(r.Findings) != named || r.NotNamed != rest {
			t.Errorf("%s: %s, %d named, %d not; want %s, %d and %d", source, got, len(r.Findings), r.NotNamed, want, named, rest)
		}
	}
	r, err := secrets.ScanCluster(t.Context(), c.client, secrets.ClusterOptions{Options: opts})
	check("live", r, err, "live 20 history 0 free 0 wal 0", 5, 15)
	opts.Places = []secrets.Place{secrets.Live, secrets.History}
	r, err = secrets.ScanCluster(t.Context(), c.client, secrets.ClusterOptions{Options: opts, StallTimeout: time.Minute})
	check("with history", r, err, "live 20 history 10 free 0 wal 0", 10, 20)
	opts.Places = []secrets.Place{secrets.History}
	r, err = secrets.ScanCluster(t.Context(), c.client, secrets.ClusterOptions{Options: opts, StallTimeout: time.Minute})
	check("history alone", r, err, "live 0 history 10 free 0 wal 0", 5, 5)
	c.Members[0].Stop()
	opts.Places = []secrets.Place{secrets.Live, secrets.History, secrets.WAL}
	r, err = secrets.ScanDataDir(t.Context(), c.Members[0].DataDir(), secrets.DataDirOptions{Options: opts})
	check("stopped", r, err, "live 20 history 10 free 0 wal 30", 15, 45)
}
