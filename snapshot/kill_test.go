//go:build unix

package snapshot_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/etcdkit/etcdkit/internal/store"
	"github.com/etcdkit/etcdkit/internal/testing/faultproxy"
	"github.com/etcdkit/etcdkit/internal/testing/s3test"
	"github.com/etcdkit/etcdkit/snapshot"
)

// duringManifest is the one point that only the store can see.
const duringManifest = "during the manifest"

// The variables by which a test starts itself as a process that will be
// killed.
const (
	envVictim = "ETCDKIT_TEST_VICTIM" // where it dies, or "later"
	envURL    = "ETCDKIT_TEST_URL"
	envS3     = "ETCDKIT_TEST_S3"
	envEtcd   = "ETCDKIT_TEST_ETCD"
	envRuns   = "ETCDKIT_TEST_RUNS"
)

func TestMain(m *testing.M) {
	switch os.Getenv(envVictim) {
	case "":
	case barePipe:
		os.Exit(runBarePipe())
	case restoreVictim:
		runRestoreVictim()
		os.Exit(1)
	default:
		os.Exit(victim())
	}
	os.Exit(m.Run())
}

// victim saves, prunes, and dies by SIGKILL on the way.
func victim() int {
	ctx := context.Background()
	inner, err := store.Open(ctx, os.Getenv(envURL), store.S3Options{Endpoint: os.Getenv(envS3)})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	repo := &deadly{Store: inner, at: os.Getenv(envVictim)}
	runs := snapshot.Runs{Dir: os.Getenv(envRuns)}
	_, err = snapshot.Save(ctx, source(strings.Split(os.Getenv(envEtcd), ",")...), repo, snapshot.SaveOptions{
		Runs: runs, PartSize: store.MinPartSize, Parallel: 1,
	})
	if err == nil {
		_, err = snapshot.Prune(ctx, repo, snapshot.PruneOptions{Policy: snapshot.Policy{Last: 1}, Runs: runs, Now: time.Now})
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// deadly is a store whose process dies at one point.
type deadly struct {
	store.Store
	at      string
	puts    int
	deletes int
}

func (d *deadly) reach(point string) {
	if d.at == point {
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		time.Sleep(time.Minute) // the signal is on its way
	}
}

func (d *deadly) Put(ctx context.Context, key string, src io.Reader, opts store.PutOptions) (int64, error) {
	if strings.HasSuffix(key, ".json") {
		d.reach("after complete, before the manifest")
		n, err := d.Store.Put(ctx, key, src, opts)
		d.reach("after the manifest")
		return n, err
	}
	d.puts++
	return d.Store.Put(ctx, key, &deadlyReader{d: d, src: src}, opts)
}

func (d *deadly) Delete(ctx context.Context, key string) error {
	err := d.Store.Delete(ctx, key)
	if d.deletes++; d.deletes == 1 {
		d.reach("between the two deletes of prune")
	}
	return err
}

// deadlyReader dies when so much of the snapshot was read.
type deadlyReader struct {
	d   *deadly
	src io.Reader
	n   int64
}

func (r *deadlyReader) Read(p []byte) (int, error) {
	n, err := r.src.Read(p)
	r.n += int64(n)
	switch {
	case r.d.puts == 2:
		r.d.reach("during failover")
	case errors.Is(err, io.EOF):
		r.d.reach("last part")
	case r.n > faultSize/2:
		r.d.reach("middle")
	case r.n > store.MinPartSize:
		r.d.reach("first part")
	}
	return n, err
}

// kill runs a victim to its end and returns whether it was killed.
func kill(t *testing.T, w *world, at string, after time.Duration, endpoints ...string) bool {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	s3 := w.server.URL
	if at == duringManifest {
		s3 = w.s3.URL
	}
	cmd.Env = append(os.Environ(), envVictim+"="+at, envURL+"="+w.url, envS3+"="+s3,
		envEtcd+"="+strings.Join(endpoints, ","), envRuns+"="+w.runs.Dir)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if after > 0 {
		timer := time.AfterFunc(after, func() { _ = cmd.Process.Kill() })
		defer timer.Stop()
	}
	if at == duringManifest {
		w.s3.Add(faultproxy.Rule{Method: http.MethodPut, Path: ".json", Stall: true})
		go w.killAtManifest(t.Context(), cmd.Process)
	}
	err := cmd.Wait()
	exit, isExit := errors.AsType[*exec.ExitError](err)
	if err != nil && !isExit || isExit && exit.ExitCode() > 0 {
		t.Fatalf("victim: %v, %s", err, stderr.String())
	}
	return isExit
}

// killAtManifest kills a process while the proxy has its manifest, and the
// store has not.
func (w *world) killAtManifest(ctx context.Context, p *os.Process) {
	for ctx.Err() == nil {
		if slices.ContainsFunc(w.s3.Requests(), func(r faultproxy.Request) bool {
			return r.Method == http.MethodPut && strings.HasSuffix(r.URL.Path, ".json")
		}) {
			_ = p.Kill()
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// TestKilledRuns kills runs at named points and sees that nothing is lost,
// nothing false is there, and the next run leaves nothing behind. minio/minio-go#737,
// minio/minio#21456: parts of interrupted uploads go too.
func TestKilledRuns(t *testing.T) {
	t.Parallel()
	members := bigCluster(t)
	server := s3test.Start(t, s3test.Options{})
	server.Setenv(t)
	direct := members.Endpoints()[0]
	for _, at := range []string{
		"first part", "middle", "last part", "after complete, before the manifest", "after the manifest",
		duringManifest, "between the two deletes of prune", "during failover",
	} {
		t.Run(at, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, members, server)
			before := w.save(t)
			endpoints := []string{direct}
			if at == "during failover" {
				w.etcd.Set(faultproxy.Faults{ToClient: faultproxy.Flow{CutAfter: faultSize / 2}})
				endpoints = []string{w.etcd.Addr(), direct}
			}
			if !kill(t, w, at, 0, endpoints...) {
				t.Fatal("the run was not killed")
			}
			if at == "between the two deletes of prune" {
				before = nil // that one was being deleted
			}
			w.settleKilled(t, before)
		})
	}
}

// TestRunsKilledAtRandomMoments does the same without choosing.
func TestRunsKilledAtRandomMoments(t *testing.T) {
	if !fullRun {
		t.Skip("runs with -tags full")
	}
	members := bigCluster(t)
	server := s3test.Start(t, s3test.Options{})
	server.Setenv(t)
	w := newWorld(t, members, server)
	for range 20 {
		after := time.Duration(rand.Int64N(int64(1500 * time.Millisecond)))
		killed := kill(t, w, "later", after, members.Endpoints()[0])
		t.Logf("killed after %s: %t", after, killed)
		w.settleKilled(t, nil)
	}
}

func (w *world) settleKilled(t *testing.T, before *snapshot.Saved) {
	t.Helper()
	if before != nil {
		w.settle(t, before)
		return
	}
	w.backups(t)
	w.save(t)
	if left := w.leftovers(t); left != 0 {
		t.Errorf("%d leftovers after the next run", left)
	}
}
