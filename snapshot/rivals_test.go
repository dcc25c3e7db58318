package snapshot_test

import (
	"context"
	"errors"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/etcdkit/etcdkit/internal/embedded"
	"github.com/etcdkit/etcdkit/internal/store"
	"github.com/etcdkit/etcdkit/internal/testing/etcdtest"
	"github.com/etcdkit/etcdkit/internal/testing/s3test"
	"github.com/etcdkit/etcdkit/snapshot"
)

// interrupted is a store that lets somebody act just before a manifest is put.
type interrupted struct {
	store.Store
	act func()
}

func (s *interrupted) Put(ctx context.Context, key string, src io.Reader, opts store.PutOptions) (int64, error) {
	if strings.HasSuffix(key, ".json") {
		s.act()
	}
	return s.Store.Put(ctx, key, src, opts)
}

// A prune that comes between the data and the manifest of a running save takes
// the data for no leftover.
func TestAPruneSparesARunningSave(t *testing.T) {
	c := cluster(t, 1, 5)
	repo, runs := store.NewFolder(t.TempDir()), snapshot.Runs{Dir: t.TempDir()}
	prune := func() {
		pruned, err := snapshot.Prune(t.Context(), repo, snapshot.PruneOptions{
			// Everything is old to it, so only the run's lock protects.
			Policy: snapshot.Policy{Last: 1}, Runs: runs, StaleAfter: time.Nanosecond, Now: time.Now,
		})
		if err != nil || len(pruned.Leftovers) != 0 {
			t.Errorf("prune: %+v, %v", pruned, err)
		}
	}
	_, err := snapshot.Save(t.Context(), source(c.Endpoints()...), &interrupted{repo, prune}, snapshot.SaveOptions{Runs: runs})
	if err != nil {
		t.Fatal(err)
	}
	if v, err := snapshot.Verify(t.Context(), repo, only(t, repo), snapshot.VerifyOptions{Now: time.Now}); err != nil || !v.OK {
		t.Errorf("verify: %+v, %v", v, err)
	}
}

// Saves into an empty repository that do not see each other begin one lineage:
// of two, pruning would only ever look after the newer one.
func TestTwoFirstSavesAtTheSameMomentBeginOneLineage(t *testing.T) {
	c := cluster(t, 1, 5)
	server := s3test.Start(t, s3test.Options{})
	server.Setenv(t)
	bucket, err := store.Open(t.Context(), "s3://"+server.Bucket(t)+"/p/", s3Options(server.URL))
	if err != nil {
		t.Fatal(err)
	}
	for name, repo := range map[string]store.Store{"a folder": store.NewFolder(t.TempDir()), "S3": bucket} {
		t.Run(name, func(t *testing.T) {
			var ready sync.WaitGroup
			ready.Add(2)
			together := func() { ready.Done(); ready.Wait() } // neither writes a manifest before both have looked
			errs := make(chan error, 2)
			for range 2 {
				go func() {
					_, err := snapshot.Save(t.Context(), source(c.Endpoints()...), &interrupted{repo, together}, snapshot.SaveOptions{})
					errs <- err
				}()
			}
			if err := errors.Join(<-errs, <-errs); err != nil {
				t.Fatal(err)
			}
			third, err := snapshot.Save(t.Context(), source(c.Endpoints()...), repo, snapshot.SaveOptions{})
			if err != nil || len(third.Warnings) != 0 {
				t.Errorf("a third: %v, %v", third, err)
			}
			all, err := snapshot.List(t.Context(), repo, "")
			if err != nil || len(all) != 3 || len(snapshot.Lineages(all)) != 1 {
				t.Errorf("%d backups of lineages %v, %v; want 3 of one", len(all), snapshot.Lineages(all), err)
			}
		})
	}
}

func TestAMemberKilledInTheMiddleIsReplacedByTheNext(t *testing.T) {
	c := etcdtest.Start(t, embedded.Options{Members: 3})
	etcdtest.Fill(t, etcdtest.Client(t, c.Endpoints()[0]), "/key/", 4000, 4096)
	byEndpoint := map[string]*embedded.Member{}
	for _, m := range c.Members {
		byEndpoint[m.Endpoint()] = m
	}
	var used string // the member that is dialed last before the stream is the best one's
	src := source(c.Endpoints()...)
	repo := store.NewFolder(t.TempDir())
	first, err := snapshot.Save(t.Context(), src, repo, snapshot.SaveOptions{})
	if err != nil {
		t.Fatal(err)
	}
	used = first.Manifest.Endpoint // the same one is chosen again
	var once sync.Once
	saved, err := snapshot.Save(t.Context(), src, repo, snapshot.SaveOptions{Progress: func(done, total int64) {
		if done > total/2 {
			once.Do(func() { go byEndpoint[used].Stop() }) // it waits for the stream, which waits here
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	if saved.Manifest.Endpoint == used && len(saved.Failed) == 0 {
		t.Skip("the killed member had sent everything already, or another was chosen")
	}
	if saved.Manifest.Endpoint == used || len(saved.Failed) != 1 || saved.Failed[0].Endpoint != used {
		t.Errorf("taken from %s, failed %v; want another than %s", saved.Manifest.Endpoint, saved.Failed, used)
	}
}
