package snapshot_test

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/etcdkit/etcdkit/internal/store"
	"github.com/etcdkit/etcdkit/internal/testing/faultproxy"
	"github.com/etcdkit/etcdkit/internal/testing/s3test"
	"github.com/etcdkit/etcdkit/snapshot"
)

// fault is something that goes wrong during a save.
type fault struct {
	name     string
	etcd     faultproxy.Faults
	s3       []faultproxy.Rule
	retryFor time.Duration           // of the store; 0 means a second
	stalls   bool                    // nothing moves any more, so that whoever waits must not wait for long
	second   bool                    // another member is there to fall over to
	change   func([][]byte) [][]byte // of the snapshot stream
	saved    bool                    // a backup comes of it
	quick    bool                    // is worth the time of every run
	is       error                   // cause of the failure
}

// impatience is the stall timeout where something does stall: what does not has
// as long for its next byte, on a loaded machine too.
const impatience = 3 * time.Second

func faults() []fault {
	const anyPart, patient = "partNumber=", 30 * time.Second
	cut := func(share int64) faultproxy.Faults {
		return faultproxy.Faults{ToClient: faultproxy.Flow{CutAfter: faultSize / 100 * share}}
	}
	part := func(n int) string { return fmt.Sprintf("partNumber=%d&", n) }
	all := []fault{
		{name: "nothing", saved: true},
		{name: "etcd: connection cut at 1 % (gardener/etcd-backup-restore#45)", etcd: cut(1), is: snapshot.ErrNoMember},
		{name: "etcd: connection cut at 50 % (gardener/etcd-backup-restore#45)", quick: true, etcd: cut(50), is: snapshot.ErrNoMember},
		{name: "etcd: connection cut at 99 % (gardener/etcd-backup-restore#45)", etcd: cut(99), is: snapshot.ErrNoMember},
		{name: "etcd: connection cut at 50 %, a second member there", etcd: cut(50), second: true, saved: true},
		{name: "etcd: stalls at 50 % (etcd-io/etcd#10298)", stalls: true, etcd: faultproxy.Faults{ToClient: faultproxy.Flow{StallAfter: faultSize / 2}}, is: snapshot.ErrStalled},
		{name: "etcd: stalls, a second member there (siderolabs/talos#14212)", stalls: true, quick: true, etcd: faultproxy.Faults{ToClient: faultproxy.Flow{StallAfter: faultSize / 2}}, second: true, saved: true},
		{name: "etcd: slow link, longer than the stall timeout (rancher/rancher#19496)", stalls: true, etcd: faultproxy.Faults{ToClient: faultproxy.Flow{Rate: faultSize / 6}}, saved: true},
		{name: "etcd: refuses connections", etcd: faultproxy.Faults{Refuse: true}, is: snapshot.ErrNoMember},
		{name: "etcd: never answers", stalls: true, etcd: faultproxy.Faults{Swallow: true}, is: snapshot.ErrNoMember},
		{name: "etcd: trailer cut from the stream (gardener/etcd-backup-restore#749)", quick: true, change: func(b [][]byte) [][]byte { return b[:len(b)-1] }, is: snapshot.ErrIncomplete},
		{name: "etcd: stream ends early, cleanly", change: func(b [][]byte) [][]byte { return b[:len(b)/2] }, is: snapshot.ErrIncomplete},
		{name: "etcd: a bit flipped", change: func(b [][]byte) [][]byte { b[len(b)/2][5] ^= 1; return b }, is: snapshot.ErrIncomplete},
		{name: "S3: 500 and 503 for a while", s3: []faultproxy.Rule{{Status: 500, Times: 3}, {Skip: 2, Status: 503, Times: 3}}, retryFor: patient, saved: true},
		{name: "S3: 500 forever", s3: []faultproxy.Rule{{Method: http.MethodPut, Path: anyPart, Status: 500}}},
		{name: "S3: 503 forever", s3: []faultproxy.Rule{{Method: http.MethodPut, Path: anyPart, Status: 503}}},
		{name: "S3: part stalls once", stalls: true, s3: []faultproxy.Rule{{Method: http.MethodPut, Path: part(2), Stall: true, Times: 1}}, retryFor: patient, saved: true},
		{name: "S3: part stalls forever", stalls: true, s3: []faultproxy.Rule{{Method: http.MethodPut, Path: part(2), Stall: true}}, is: store.ErrUnreachable},
		{name: "S3: slow answers (k3s-io/k3s#4205)", s3: []faultproxy.Rule{{Method: http.MethodPut, Path: anyPart, Delay: 700 * time.Millisecond}}, saved: true},
		{name: "S3: no right to write (rancher/rke2#10687)", s3: []faultproxy.Rule{{Method: http.MethodPut, Status: 403}, {Method: http.MethodPost, Status: 403}}, is: store.ErrDenied},
		{name: "S3: joining fails forever", s3: []faultproxy.Rule{{Method: http.MethodPost, Path: "uploadId=", Status: 500}}},
		{name: "S3: the answer to joining is lost", quick: true, s3: []faultproxy.Rule{{Method: http.MethodPost, Path: "uploadId=", CutBody: faultproxy.AtOnce, Times: 1}}, retryFor: patient, saved: true},
		{name: "S3: the manifest is refused", s3: []faultproxy.Rule{{Method: http.MethodPut, Path: ".json", Status: 403}}, is: store.ErrDenied},
		{name: "S3: the manifest is refused, and deleting too", quick: true, s3: []faultproxy.Rule{{Method: http.MethodPut, Path: ".json", Status: 403}, {Method: http.MethodDelete, Status: 403}}, is: store.ErrDenied},
		{name: "S3: aborting is refused", quick: true, s3: []faultproxy.Rule{{Method: http.MethodPut, Path: part(3), Status: 403}, {Method: http.MethodDelete, Status: 403}}, is: store.ErrDenied},
		{name: "S3: listing is refused", quick: true, s3: []faultproxy.Rule{{Method: http.MethodGet, Path: "list-type=2", Status: 403}, {Method: http.MethodGet, Path: "uploads", Status: 403}}, saved: true},
	}
	for _, share := range []int64{1, 50, 99} {
		n := max(store.MinPartSize/100*share, 1)
		all = append(all,
			fault{name: fmt.Sprintf("S3: part cut at %d %% once", share), s3: []faultproxy.Rule{{Method: http.MethodPut, Path: part(1), CutSend: n, Times: 1}}, retryFor: patient, saved: true},
			fault{name: fmt.Sprintf("S3: part cut at %d %% forever", share), s3: []faultproxy.Rule{{Method: http.MethodPut, Path: part(3), CutSend: n}}})
	}
	return all
}

// TestFaults prints its table with -v. The whole table takes two minutes, so
// every run strikes only what the others are variations of.
func TestFaults(t *testing.T) {
	t.Parallel()
	members := bigCluster(t)
	server := s3test.Start(t, s3test.Options{})
	server.Setenv(t)
	var mu sync.Mutex
	var table strings.Builder
	tw := tabwriter.NewWriter(&table, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tw, "FAULT\tOUTCOME\tBACKUPS LOST\tFALSE BACKUPS\tLEFT AFTER THE NEXT RUN\tCAUSE TOLD")
	for _, f := range faults() {
		if !fullRun && !f.quick {
			continue
		}
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, members, server)
			before := w.save(t)
			outcome, told := f.strike(t, w)
			a := w.settle(t, before)
			if want := map[bool]int{true: 2, false: 1}[f.saved]; a.found != want {
				t.Errorf("%d backups after the fault, want %d", a.found, want)
			}
			mu.Lock()
			defer mu.Unlock()
			fmt.Fprintf(tw, "%s\t%s\t%d\t%d\t%d\t%s\n", f.name, outcome, a.lost, a.fake, a.left, told)
		})
	}
	t.Cleanup(func() { // when all have ended
		_ = tw.Flush()
		t.Log("\n" + table.String())
	})
}

// strike saves under the fault and checks how that ends.
func (f fault) strike(t *testing.T, w *world) (outcome, told string) {
	t.Helper()
	src := source(w.etcd.Addr())
	if f.change != nil {
		src = tamper(t, w.members.Endpoints()[0], f.change)
	}
	if f.second {
		src.Endpoints = append(src.Endpoints, w.members.Endpoints()[0])
	}
	w.etcd.Set(f.etcd)
	w.s3.Add(f.s3...)
	opts, bucket := w.options(), store.S3Options{Endpoint: w.s3.URL, RetryFor: max(f.retryFor, time.Second)}
	if f.stalls {
		opts.StallTimeout, bucket.StallTimeout = impatience, impatience
	}
	saved, err := snapshot.Save(t.Context(), src, w.open(t, bucket), opts)
	if f.saved {
		if err != nil {
			t.Errorf("not saved: %v", err)
		}
		if f.second && (len(saved.Failed) != 1 || !strings.Contains(saved.Failed[0].Error(), "after")) {
			t.Errorf("failed members: %v; want the first, and how far it came", saved.Failed)
		}
		return "saved", ""
	}
	if err == nil || (f.is != nil && !errors.Is(err, f.is)) {
		t.Errorf("got %v, want %v", err, f.is)
	}
	text := fmt.Sprint(err)
	if strings.Contains(text, w.server.SecretKey) || strings.Contains(text, w.server.AccessKey) { // rancher/rke2#1698
		t.Error("the error shows a key")
	}
	return "failed", strings.ReplaceAll(text, "\n", "; ")
}
