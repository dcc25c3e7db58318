package snapshot_test

import (
	"context"
	"errors"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"

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
	t.Parallel()
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

// chosen tells which member's snapshot is opened.
type chosen struct {
	snapshot.Client
	endpoint string
	tell     func(endpoint string)
}

func (c *chosen) ActiveConnection() *grpc.ClientConn {
	c.tell(c.endpoint)
	return c.Client.ActiveConnection()
}

// The database is larger than all that the network between holds, so a member
// killed at the first bytes cannot have sent the last ones.
func TestAMemberKilledInTheMiddleIsReplacedByTheNext(t *testing.T) {
	t.Parallel()
	servers := etcdtest.StartServers(t, etcdtest.ServerOptions{Members: 3})
	etcdtest.Fill(t, etcdtest.Client(t, servers.Endpoints()...), "/key/", 5000, 12_000)
	var used []string // the members whose streams were opened, in order
	src := source(servers.Endpoints()...)
	src.Dial = func(ctx context.Context, endpoint string) (snapshot.Client, error) {
		c, err := dial(ctx, endpoint)
		return &chosen{c, endpoint, func(e string) { used = append(used, e) }}, err
	}
	killed := false
	saved, err := snapshot.Save(t.Context(), src, store.NewFolder(t.TempDir()), snapshot.SaveOptions{Progress: func(done, _ int64) {
		if done > 0 && !killed {
			killed = true
			for _, m := range servers.Members {
				if m.Endpoint == used[0] {
					m.Kill()
				}
			}
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	if len(used) != 2 || saved.Manifest.Endpoint != used[1] || len(saved.Failed) != 1 || saved.Failed[0].Endpoint != used[0] || !saved.Manifest.Quorum {
		t.Errorf("streams of %v, taken from %s with quorum %t, failed %v; want the first replaced by the second",
			used, saved.Manifest.Endpoint, saved.Manifest.Quorum, saved.Failed)
	}
}
