package snapshot_test

import (
	"context"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/etcdkit/etcdkit/internal/embedded"
	"github.com/etcdkit/etcdkit/internal/mvccdb"
	"github.com/etcdkit/etcdkit/internal/store"
	"github.com/etcdkit/etcdkit/internal/testing/etcdtest"
	"github.com/etcdkit/etcdkit/internal/testing/s3test"
	"github.com/etcdkit/etcdkit/snapshot"
)

// flipABit changes one bit in the database of a running member, as a bad disk
// or memory does: a record loses its key. The member keeps serving.
func flipABit(t *testing.T, m *embedded.Member) {
	t.Helper()
	f, err := os.OpenFile(filepath.Join(m.DataDir(), "member", "snap", "db"), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		t.Fatal(err)
	}
	db, err := mvccdb.Open(f, info.Size())
	if err != nil {
		t.Fatal(err)
	}
	var at int64
	err = mvccdb.Scan(t.Context(), db, mvccdb.Options{Buckets: []string{mvccdb.KeyBucket}, Workers: 1}, func(b *mvccdb.Batch) (int, error) {
		for _, e := range b.Elements {
			position := make([]byte, 4)
			if _, err := f.ReadAt(position, e.Offset+4); err != nil {
				return 0, err
			}
			at = e.Offset + int64(binary.LittleEndian.Uint32(position)) + int64(len(e.RawKey))
		}
		return 0, nil
	}, func(int) error { return nil })
	if err != nil || at == 0 {
		t.Fatalf("no record in the file: %v", err)
	}
	tag := make([]byte, 1)
	if _, err := f.ReadAt(tag, at); err != nil {
		t.Fatal(err)
	}
	tag[0] ^= 0x40
	if _, err := f.WriteAt(tag, at); err != nil {
		t.Fatal(err)
	}
}

// A member whose database is damaged gives no backup, with whatever target and
// codec: its snapshot is whole by its SHA-256, which the member computed over
// the damage.
func TestADamagedMemberGivesNoBackup(t *testing.T) {
	server := s3test.Start(t, s3test.Options{})
	server.Setenv(t)
	members := cluster(t, 3, 300)
	damaged := members.Members[0]
	type target struct {
		repo  store.Store
		codec snapshot.Codec
		first *snapshot.Saved
	}
	targets := map[string]*target{
		"a folder":             {repo: store.NewFolder(t.TempDir())},
		"a folder, compressed": {repo: store.NewFolder(t.TempDir()), codec: snapshot.Codec{Compression: "zstd"}},
		"S3":                   {repo: openStore(t, "s3://"+server.Bucket(t)+"/a", server.URL)},
		"S3, compressed":       {repo: openStore(t, "s3://"+server.Bucket(t)+"/b", server.URL), codec: snapshot.Codec{Compression: "zstd"}},
	}
	for name, to := range targets {
		saved, err := snapshot.Save(t.Context(), source(damaged.Endpoint()), to.repo, snapshot.SaveOptions{Codec: to.codec})
		if err != nil {
			t.Fatal(err)
		}
		if m := saved.Manifest; !m.Examined || m.Revision == 0 {
			t.Errorf("%s: examined %t, revision %d of a good member; want both", name, m.Examined, m.Revision)
		}
		to.first = saved
	}
	flipABit(t, damaged)
	for name, to := range targets {
		t.Run(name, func(t *testing.T) {
			opts := snapshot.SaveOptions{Codec: to.codec}
			_, err := snapshot.Save(t.Context(), source(damaged.Endpoint()), to.repo, opts)
			if !errors.Is(err, snapshot.ErrIncomplete) || !strings.Contains(err.Error(), "the record has no key") {
				t.Errorf("save: %v; want the damage", err)
			}
			if b := only(t, to.repo); b.Name != to.first.Manifest.Name {
				t.Errorf("%s is stored, want the good one alone", b.Name)
			}
		})
	}
	t.Run("another member is asked", func(t *testing.T) {
		to := targets["S3, compressed"]
		others := source(members.Endpoints()...)
		saved, err := snapshot.Save(t.Context(), others, to.repo, snapshot.SaveOptions{Codec: to.codec})
		if err != nil || !saved.Manifest.Examined {
			t.Fatalf("%+v, %v; want the snapshot of a good member", saved, err)
		}
		for _, b := range list(t, to.repo) {
			v, err := snapshot.Verify(t.Context(), to.repo, b, snapshot.VerifyOptions{NoRecord: true, Now: time.Now, Scratch: t.TempDir()})
			if err != nil || !v.OK {
				t.Errorf("%s: %+v, %v", b.Name, v, err)
			}
		}
	})
}

func openStore(t *testing.T, location, endpoint string) store.Store {
	t.Helper()
	s, err := store.Open(t.Context(), location, s3Options(endpoint))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func list(t *testing.T, repo store.Store) []*snapshot.Backup {
	t.Helper()
	all, err := snapshot.List(t.Context(), repo, "")
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// Leases, users and roles change without a revision, and a backup holds them.
func TestWhatChangesWithoutARevisionIsNotUnchanged(t *testing.T) {
	server := s3test.Start(t, s3test.Options{})
	server.Setenv(t)
	c := cluster(t, 1, 20)
	client := etcdtest.Client(t, c.Endpoints()...)
	// A cluster writes entries of its own, after an election for example: then a
	// run takes a snapshot that it need not take, and the next one does not.
	nothing := func(name string, repo store.Store) {
		t.Helper()
		etcdtest.Until(t, name+": nothing has changed", func(ctx context.Context) bool {
			saved, err := snapshot.Save(ctx, source(c.Endpoints()...), repo, snapshot.SaveOptions{SkipUnchanged: true})
			return err == nil && saved.Unchanged
		})
	}
	for name, repo := range map[string]store.Store{"a folder": store.NewFolder(t.TempDir()), "S3": openStore(t, "s3://"+server.Bucket(t)+"/a", server.URL)} {
		save := func(what string) {
			t.Helper()
			saved, err := snapshot.Save(t.Context(), source(c.Endpoints()...), repo, snapshot.SaveOptions{SkipUnchanged: true})
			if err != nil || saved.Unchanged {
				t.Errorf("%s: after %s: unchanged %t, %v; want a snapshot", name, what, saved.Unchanged, err)
			}
		}
		save("the beginning")
		nothing(name, repo)
		if _, err := client.Grant(t.Context(), 600); err != nil {
			t.Fatal(err)
		}
		save("a lease")
		if _, err := client.UserAdd(t.Context(), "user of "+name, "password"); err != nil {
			t.Fatal(err)
		}
		save("a user")
		nothing(name, repo)
	}
}
