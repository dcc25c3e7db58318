package snapshot_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/etcdkit/etcdkit/internal/store"
	"github.com/etcdkit/etcdkit/internal/testing/faultproxy"
	"github.com/etcdkit/etcdkit/internal/testing/s3test"
	"github.com/etcdkit/etcdkit/snapshot"
)

// fillRepository adds backups to a bucket, one an hour back from a real one, until
// there are so many.
func fillRepository(t *testing.T, w *world, newest *snapshot.Manifest, n int) {
	t.Helper()
	bucket, prefix, err := store.ParseS3(w.url)
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(w.server.Dir, bucket, prefix, newest.ClusterID)
	for i := 1; i < n; i++ {
		m := *newest
		m.CreatedAt = newest.CreatedAt.Add(time.Duration(-i) * time.Hour)
		m.Name = fmt.Sprintf("%s-%s-%08x", m.CreatedAt.Format("20060102T150405Z"), m.MemberID, i)
		m.Data = m.Name + ".db"
		raw, err := json.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, m.Name+".json"), raw, 0o600); err != nil {
			t.Fatal(err)
		}
		file, err := os.Create(filepath.Join(dir, m.Data))
		if err != nil {
			t.Fatal(err)
		}
		if err := file.Truncate(m.StoredBytes); err != nil { // sparse: nobody reads it
			t.Fatal(err)
		}
		if err := file.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// A store is asked for money: what is needed of thousands of backups are their
// names, and the newest ones.
func TestFewRequestsAmongManyBackups(t *testing.T) {
	n, most := 600, 10 // 2 pages of 1,000 names
	if fullRun {
		n, most = 6000, 20 // 12 pages
	}
	server := s3test.Start(t, s3test.Options{})
	server.Setenv(t)
	w := newWorld(t, cluster(t, 1, 3), server)
	fillRepository(t, w, w.save(t).Manifest, n)
	repo := w.open(t, store.S3Options{Endpoint: w.s3.URL})
	prune := func(within time.Duration) func() error {
		return func() error {
			p, err := snapshot.Prune(t.Context(), repo, snapshot.PruneOptions{Policy: snapshot.Policy{Within: within}, DryRun: true, Now: time.Now})
			if err == nil && len(p.Decisions) < n {
				err = fmt.Errorf("%d decisions", len(p.Decisions))
			}
			return err
		}
	}
	all := time.Duration(n) * time.Hour
	for _, tc := range []struct {
		name string
		most int
		do   func() error
	}{
		{"age", most, func() error {
			_, err := snapshot.Age(t.Context(), repo, "", time.Hour, 0, time.Now())
			return err
		}},
		{"latest", most, func() error {
			_, _, err := snapshot.Choose(t.Context(), repo, snapshot.Choice{Name: "latest"})
			return err
		}},
		{"prune that deletes nothing", most, prune(all)},
		{"prune that deletes two", most + 12, prune(all - 150*time.Minute)},
		{"save", most, func() error {
			_, err := snapshot.Save(t.Context(), source(w.members.Endpoints()[0]), repo, w.options())
			return err
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			before := len(w.s3.Requests())
			if err := tc.do(); err != nil {
				t.Fatal(err)
			}
			asked := w.s3.Requests()[before:]
			t.Logf("%d requests", len(asked))
			if len(asked) > tc.most {
				var lines []string
				for _, r := range asked {
					lines = append(lines, r.Method+" "+r.URL.RequestURI())
				}
				t.Errorf("%d requests, want at most %d:\n%s", len(asked), tc.most, strings.Join(lines, "\n"))
			}
		})
	}
}

// Without a stage the stream is read as fast as the store takes it, so a store
// that does not move holds etcd's read transaction, too.
func TestAnUploadThatStandsStillEndsWithTheStreamsTime(t *testing.T) {
	server := s3test.Start(t, s3test.Options{})
	server.Setenv(t)
	w := newWorld(t, cluster(t, 1, 3), server)
	w.s3.Add(faultproxy.Rule{Method: http.MethodPut, Stall: true})
	opts := w.options()
	opts.MaxDuration = time.Second
	repo := w.open(t, store.S3Options{Endpoint: w.s3.URL, StallTimeout: 10 * time.Second, RetryFor: time.Second})
	if _, err := snapshot.Save(t.Context(), source(w.members.Endpoints()[0]), repo, opts); !errors.Is(err, snapshot.ErrTooLong) {
		t.Errorf("got %v, want ErrTooLong", err)
	}
}
