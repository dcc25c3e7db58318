package snapshot_test

import (
	"bytes"
	"context"
	"errors"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/minio/minio-go/v7"

	"github.com/etcdkit/etcdkit/internal/embedded"
	"github.com/etcdkit/etcdkit/internal/store"
	"github.com/etcdkit/etcdkit/internal/testing/etcdtest"
	"github.com/etcdkit/etcdkit/internal/testing/faultproxy"
	"github.com/etcdkit/etcdkit/internal/testing/s3test"
	"github.com/etcdkit/etcdkit/snapshot"
)

// etcd-io/etcd#10298: a stalled save ends, and leaves no file.
func TestAStalledSaveToAFileEndsAndLeavesNothing(t *testing.T) {
	t.Parallel()
	c := cluster(t, 1, 200)
	proxy := faultproxy.NewTCP(t, c.Endpoints()[0])
	proxy.Set(faultproxy.Faults{ToClient: faultproxy.Flow{StallAfter: 20 << 10}})
	dir := t.TempDir()
	opts := snapshot.SaveOptions{StallTimeout: impatience}
	if _, err := snapshot.SaveFile(t.Context(), source(proxy.Addr()), filepath.Join(dir, "x.db"), opts); !errors.Is(err, snapshot.ErrStalled) && !errors.Is(err, snapshot.ErrNoMember) {
		t.Errorf("got %v, want ErrStalled", err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}

// siderolabs/talos#14212: a stream of which nothing ever comes ends, with
// how many bytes came, and the next member is tried.
func TestAStreamThatNeverSendsIsGivenUpForTheNextMember(t *testing.T) {
	t.Parallel()
	c := cluster(t, 1, 200)
	done := make(chan struct{})
	defer close(done)
	silent := tamper(t, c.Endpoints()[0], func([][]byte) [][]byte { <-done; return nil })
	opts := snapshot.SaveOptions{StallTimeout: impatience}
	_, err := snapshot.SaveFile(t.Context(), silent, filepath.Join(t.TempDir(), "x.db"), opts)
	if !errors.Is(err, snapshot.ErrStalled) || !strings.Contains(err.Error(), "after 0 bytes") {
		t.Errorf("got %v, want ErrStalled and how far it came", err)
	}
	both := snapshot.Source{Endpoints: []string{silent.Endpoints[0], strings.Replace(c.Endpoints()[0], "127.0.0.1", "localhost", 1)}}
	both.Dial = func(ctx context.Context, endpoint string) (snapshot.Client, error) {
		if endpoint == silent.Endpoints[0] {
			return silent.Dial(ctx, endpoint)
		}
		return dial(ctx, endpoint)
	}
	saved, err := snapshot.SaveFile(t.Context(), both, filepath.Join(t.TempDir(), "x.db"), opts)
	if err != nil || len(saved.Failed) != 1 || saved.Manifest.Endpoint != both.Endpoints[1] {
		t.Errorf("with another member: %+v, %v", saved, err)
	}
}

// etcd-io/etcd#16242: nothing is renamed over what is no regular file.
func TestADeviceIsNeverReplaced(t *testing.T) {
	t.Parallel()
	c := cluster(t, 1, 1)
	target := filepath.Join(t.TempDir(), "device")
	if err := os.Symlink(os.DevNull, target); err != nil {
		t.Skip(err)
	}
	if _, err := snapshot.SaveFile(t.Context(), source(c.Endpoints()...), target, snapshot.SaveOptions{}); err == nil {
		t.Error("saved over a link to a device")
	}
	if info, err := os.Lstat(target); err != nil || info.Mode().Type() != os.ModeSymlink {
		t.Errorf("the link is now %v, %v", info, err)
	}
}

// rancher/rancher#30662: nothing is staged unless told, and what was
// staged is gone.
func TestStagingLeavesNoFile(t *testing.T) {
	t.Parallel()
	c := cluster(t, 1, 10)
	stage := t.TempDir()
	for name, opts := range map[string]snapshot.SaveOptions{
		"plain":                {Stage: stage},
		"limited":              {Stage: stage, LimitUpload: 1 << 20},
		"limited, held stream": {HoldStream: true, LimitUpload: 1 << 20, Codec: snapshot.Codec{Compression: "zstd"}},
	} {
		t.Run(name, func(t *testing.T) {
			repo := store.NewFolder(t.TempDir())
			if _, err := snapshot.Save(t.Context(), source(c.Endpoints()...), repo, opts); err != nil {
				t.Fatal(err)
			}
			if v, err := snapshot.Verify(t.Context(), repo, only(t, repo), snapshot.VerifyOptions{Now: time.Now}); err != nil || !v.OK {
				t.Errorf("verify: %+v, %v", v, err)
			}
			if left, err := os.ReadDir(stage); err != nil || len(left) != 0 {
				t.Errorf("left in the stage: %v, %v", left, err)
			}
		})
	}
}

// minio/minio-go#989: an upload of unknown size takes no large buffers.
func TestASmallUploadOfUnknownSizeTakesLittleMemory(t *testing.T) {
	server := s3test.Start(t, s3test.Options{})
	server.Setenv(t)
	repo, err := store.Open(t.Context(), "s3://"+server.Bucket(t)+"/", s3Options(server.URL))
	if err != nil {
		t.Fatal(err)
	}
	least := uint64(math.MaxUint64) // of some, for what else runs in this process counts, too
	for range 3 {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		if _, err := repo.Put(t.Context(), "x", bytes.NewReader(make([]byte, 4096)), store.PutOptions{}); err != nil {
			t.Fatal(err)
		}
		runtime.ReadMemStats(&after)
		least = min(least, after.TotalAlloc-before.TotalAlloc)
	}
	if least > 4<<20 {
		t.Errorf("%d bytes were allocated for 4096", least)
	}
}

// rancher/rke2#10687: without the right to delete, uploads work and
// pruning silently never did.
func TestAMissingRightToDeleteIsNamed(t *testing.T) {
	c := cluster(t, 1, 3)
	server := s3test.Start(t, s3test.Options{})
	server.Setenv(t)
	proxy := faultproxy.NewHTTP(t, server.URL)
	proxy.Add(faultproxy.Rule{Method: http.MethodDelete, Status: http.StatusForbidden})
	repo, err := store.Open(t.Context(), "s3://"+server.Bucket(t)+"/p/", s3Options(proxy.URL))
	if err != nil {
		t.Fatal(err)
	}
	checks, err := snapshot.CheckStore(t.Context(), repo, time.Now)
	if !errors.Is(err, snapshot.ErrStoreLacks) {
		t.Fatalf("check: %v, %v; want ErrStoreLacks", checks, err)
	}
	for _, check := range checks {
		bad := check.Name == "delete" || check.Name == "abort"
		if (check.Result == snapshot.ResultBad) != bad || bad && !strings.Contains(check.Detail, "s3:") {
			t.Errorf("%s: %s, %s", check.Name, check.Result, check.Detail)
		}
	}
	for range 2 {
		if _, err := snapshot.Save(t.Context(), source(c.Endpoints()...), repo, snapshot.SaveOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	_, err = snapshot.Prune(t.Context(), repo, snapshot.PruneOptions{Policy: snapshot.Policy{Last: 1}, Now: time.Now})
	if !errors.Is(err, store.ErrDenied) {
		t.Errorf("prune: %v, want ErrDenied", err)
	}
}

// A member without quorum still serves snapshots, old ones perhaps.
func TestWithoutQuorumTheBackupIsMarkedAndNeverGood(t *testing.T) {
	t.Parallel()
	c := etcdtest.Start(t, embedded.Options{Members: 3})
	write(t, c.Endpoints()[0], 5)
	repo := store.NewFolder(t.TempDir())
	good, err := snapshot.Save(t.Context(), source(c.Endpoints()...), repo, snapshot.SaveOptions{})
	if err != nil {
		t.Fatal(err)
	}
	c.Members[1].Stop()
	c.Members[2].Stop()
	saved, err := snapshot.Save(t.Context(), source(c.Endpoints()...), repo, snapshot.SaveOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if saved.Manifest.Quorum || len(saved.Warnings) == 0 || saved.Manifest.Lineage != good.Manifest.Lineage {
		t.Errorf("quorum %t, lineage %q, warnings %q", saved.Manifest.Quorum, saved.Manifest.Lineage, saved.Warnings)
	}
	all, err := snapshot.List(t.Context(), repo, "")
	if err != nil {
		t.Fatal(err)
	}
	if latest, err := snapshot.Latest(all, false); err != nil || latest.Name != good.Manifest.Name {
		t.Errorf("latest is %v, %v; want the one with quorum", latest, err)
	}
	if latest, err := snapshot.Latest(all, true); err != nil || latest.Name != saved.Manifest.Name {
		t.Errorf("latest of any is %v, %v", latest, err)
	}
}

func TestLocksKeepBackupsFromPruning(t *testing.T) {
	c := cluster(t, 1, 3)
	server := s3test.Start(t, s3test.Options{Versioning: true})
	server.Setenv(t)
	repo, err := store.Open(t.Context(), "s3://"+server.LockedBucket(t)+"/", s3Options(server.URL))
	if err != nil {
		t.Fatal(err)
	}
	for _, lock := range []store.Lock{{Until: time.Now().Add(time.Hour).UTC().Truncate(time.Second)}, {LegalHold: true}, {}, {}} {
		if _, err := snapshot.Save(t.Context(), source(c.Endpoints()...), repo, snapshot.SaveOptions{Lock: lock}); err != nil {
			t.Fatal(err)
		}
	}
	pruned, err := snapshot.Prune(t.Context(), repo, snapshot.PruneOptions{Policy: snapshot.Policy{Last: 1}, Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, d := range pruned.Decisions {
		got = append(got, strings.SplitN(d.Reasons[0], " ", 3)[0])
	}
	if want := "locked under no last"; strings.Join(got, " ") != want {
		t.Errorf("reasons begin %q, want %q", got, want)
	}
}

func TestUnchangedClustersLeaveARecordThatAgeCounts(t *testing.T) {
	t.Parallel()
	c := cluster(t, 1, 3)
	repo := store.NewFolder(t.TempDir())
	now := time.Now()
	opts := snapshot.SaveOptions{SkipUnchanged: true, Now: func() time.Time { return now }}
	save := func() *snapshot.Saved {
		t.Helper()
		saved, err := snapshot.Save(t.Context(), source(c.Endpoints()...), repo, opts)
		if err != nil {
			t.Fatal(err)
		}
		return saved
	}
	if save().Unchanged {
		t.Error("the first save stored nothing")
	}
	now = now.Add(30 * time.Hour)
	if !save().Unchanged {
		t.Error("the second save stored the same again")
	}
	if f, err := snapshot.Age(t.Context(), repo, "", 26*time.Hour, 0, now.Add(time.Hour)); err != nil || !f.OK {
		t.Errorf("age: %+v, %v; want the record counted", f, err)
	}
	if _, err := snapshot.Age(t.Context(), repo, "", 26*time.Hour, 0, now.Add(30*time.Hour)); !errors.Is(err, snapshot.ErrTooOld) {
		t.Errorf("age: %v, want ErrTooOld", err)
	}
	write(t, c.Endpoints()[0], 1)
	if save().Unchanged {
		t.Error("a change was not saved")
	}
}

// minio/minio-go#737, minio/minio#21456: parts of interrupted uploads cost
// money. A signal leaves none; TestKilledRuns has those that a SIGKILL left.
func TestACancelledSaveLeavesNothing(t *testing.T) {
	c := bigCluster(t)
	server := s3test.Start(t, s3test.Options{})
	server.Setenv(t)
	w := newWorld(t, c, server)
	stopped := errors.New("stopped by a signal")
	ctx, cancel := context.WithCancelCause(t.Context())
	opts := w.options()
	opts.Progress = func(done, _ int64) {
		if done > faultSize/2 {
			cancel(stopped)
		}
	}
	if _, err := snapshot.Save(ctx, source(c.Endpoints()[0]), w.direct, opts); !errors.Is(err, stopped) {
		t.Errorf("got %v, want the cause of the cancel", err)
	}
	if all, _ := w.backups(t); len(all) != 0 || w.leftovers(t) != 0 {
		t.Errorf("%d backups and leftovers after a cancel", len(all))
	}
}

func TestAPruneAbortsOwnUploadsThatAreStaleAndNoOthers(t *testing.T) {
	server := s3test.Start(t, s3test.Options{})
	server.Setenv(t)
	bucket := server.Bucket(t)
	repo, err := store.Open(t.Context(), "s3://"+bucket+"/p/", s3Options(server.URL))
	if err != nil {
		t.Fatal(err)
	}
	core := minio.Core{Client: server.Client(t)}
	own, foreign := "p/0123456789abcdef/20260102T030405Z-00000000000000aa-00112233.db.zst", "p/somebody/elses.db"
	for _, key := range []string{own, foreign} {
		if _, err := core.NewMultipartUpload(t.Context(), bucket, key, minio.PutObjectOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	prune := func(staleAfter time.Duration) []string {
		t.Helper()
		p, err := snapshot.Prune(t.Context(), repo, snapshot.PruneOptions{Policy: snapshot.Policy{Last: 1}, StaleAfter: staleAfter, Now: time.Now})
		if err != nil {
			t.Fatal(err)
		}
		uploads, err := core.ListMultipartUploads(t.Context(), bucket, "", "", "", "", 10)
		if err != nil {
			t.Fatal(err)
		}
		var left []string
		for _, u := range uploads.Uploads {
			left = append(left, u.Key)
		}
		if len(left)+len(p.Leftovers) != 2 {
			t.Errorf("%d leftovers told, left are %v", len(p.Leftovers), left)
		}
		return left
	}
	if left := prune(time.Hour); len(left) != 2 {
		t.Errorf("young ones: %v are left, want both", left)
	}
	if left := prune(time.Nanosecond); !slices.Equal(left, []string{foreign}) {
		t.Errorf("stale ones: %v are left, want only the one of somebody else", left)
	}
}
