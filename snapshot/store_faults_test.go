package snapshot_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/etcdkit/etcdkit/internal/mvccdb"
	"github.com/etcdkit/etcdkit/internal/store"
	"github.com/etcdkit/etcdkit/snapshot"
)

// bentStore is a folder of which some calls go otherwise.
type bentStore struct {
	*store.Folder
	held    string // ending of the keys under legal hold
	broken  string // ending of the keys that cannot be read
	only    string // and what else they contain
	err     error  // why
	bounded bool   // a Put had a deadline
	times   int    // how often it cannot be read; 0 means always
	hidden  string // ending of the keys that listings do not show
	stat    error  // why no object can be asked for
	ahead   time.Duration
	forget  string // ending of the keys that are put and not stored
}

// healed is the count of a store that has been unreadable often enough.
const healed = -1

// now is the time of the store and of whoever uses it, if its clock is right.
func (s *bentStore) now() time.Time { return time.Now().Add(s.ahead) }

func (s *bentStore) Now(ctx context.Context) (time.Time, error) {
	now, err := s.Folder.Now(ctx)
	return now.Add(s.ahead), err
}

func (s *bentStore) List(ctx context.Context, prefix string) ([]store.Object, error) {
	return s.ListAfter(ctx, prefix, "")
}

func (s *bentStore) ListAfter(ctx context.Context, prefix, after string) ([]store.Object, error) {
	all, err := s.Folder.ListAfter(ctx, prefix, after)
	return slices.DeleteFunc(all, func(o store.Object) bool { return s.hidden != "" && strings.HasSuffix(o.Key, s.hidden) }), err
}

func (s *bentStore) Stat(ctx context.Context, key string) (store.Object, error) {
	if s.stat != nil {
		return store.Object{}, s.stat
	}
	return s.Folder.Stat(ctx, key)
}

func (s *bentStore) Locked(_ context.Context, key string) (store.Lock, error) {
	return store.Lock{LegalHold: s.held != "" && strings.HasSuffix(key, s.held)}, nil
}

func (s *bentStore) Get(ctx context.Context, key string) (io.ReadCloser, int64, error) {
	if s.broken != "" && strings.HasSuffix(key, s.broken) && strings.Contains(key, s.only) && s.times != healed {
		if s.times > 0 {
			if s.times--; s.times == 0 {
				s.times = healed
			}
		}
		return nil, 0, s.err
	}
	return s.Folder.Get(ctx, key)
}

func (s *bentStore) Put(ctx context.Context, key string, src io.Reader, opts store.PutOptions) (int64, error) {
	if _, has := ctx.Deadline(); has {
		s.bounded = true
	}
	if s.forget != "" && strings.HasSuffix(key, s.forget) {
		return io.Copy(io.Discard, src)
	}
	return s.Folder.Put(ctx, key, src, opts)
}

func TestTheUploadFromAStageMayTakeLongerThanTheStream(t *testing.T) {
	t.Parallel()
	c := cluster(t, 1, 3)
	repo := &bentStore{Folder: store.NewFolder(t.TempDir())}
	opts := snapshot.SaveOptions{Stage: t.TempDir(), MaxDuration: time.Minute}
	if _, err := snapshot.Save(t.Context(), source(c.Endpoints()...), repo, opts); err != nil {
		t.Fatal(err)
	}
	if repo.bounded {
		t.Error("the upload has the deadline of the stream")
	}
}

func TestAStreamThatTakesTooLongIsEnded(t *testing.T) {
	t.Parallel()
	c := cluster(t, 1, 3)
	done := make(chan struct{})
	slow := tamper(t, c.Endpoints()[0], func(all [][]byte) [][]byte { <-done; return all })
	defer close(done)
	opts := snapshot.SaveOptions{Stage: t.TempDir(), MaxDuration: time.Second}
	if _, err := snapshot.Save(t.Context(), slow, store.NewFolder(t.TempDir()), opts); !errors.Is(err, snapshot.ErrTooLong) {
		t.Errorf("got %v, want ErrTooLong", err)
	}
}

func TestPruneAsksForTheLocksOfDataAndManifest(t *testing.T) {
	t.Parallel()
	c := cluster(t, 1, 3)
	folder := store.NewFolder(t.TempDir())
	for range 2 {
		if _, err := snapshot.Save(t.Context(), source(c.Endpoints()...), folder, snapshot.SaveOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	for held, want := range map[string]bool{".db": true, ".json": true, "none": false} {
		p, err := snapshot.Prune(t.Context(), &bentStore{Folder: folder, held: held},
			snapshot.PruneOptions{Policy: snapshot.Policy{Last: 1}, DryRun: true, Now: time.Now})
		if err != nil || len(p.Decisions) != 2 {
			t.Fatalf("%+v, %v; want two decisions", p, err)
		}
		if kept := p.Decisions[0].Keep && p.Decisions[1].Keep; kept != want {
			t.Errorf("%s held: both kept is %t, want %t", held, kept, want)
		}
	}
}

func TestARestoreTellsASourceThatWasCutFromOneThatEnded(t *testing.T) {
	t.Parallel()
	var packed bytes.Buffer
	w, err := zstd.NewWriter(&packed)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(kubernetes(t)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	r, err := zstd.NewReader(bytes.NewReader(packed.Bytes()[:packed.Len()/2]))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	src := snapshot.RestoreSource{Name: "cut.zst", Reader: r}
	if _, err := snapshot.Restore(t.Context(), src, single(filepath.Join(t.TempDir(), "d"))); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("got %v; want that the source broke", err)
	}
}

func TestOneUnreadableObjectDoesNotStandInTheWayOfTheOthers(t *testing.T) {
	t.Parallel()
	c := cluster(t, 1, 3)
	folder := store.NewFolder(t.TempDir())
	if _, err := snapshot.Save(t.Context(), source(c.Endpoints()...), folder, snapshot.SaveOptions{}); err != nil {
		t.Fatal(err)
	}
	old := only(t, folder)
	if _, err := snapshot.Verify(t.Context(), folder, old, snapshot.VerifyOptions{Now: time.Now}); err != nil {
		t.Fatal(err)
	}
	repo := &bentStore{Folder: folder, broken: old.Name + ".json", err: errors.New("input/output error")}
	if _, err := snapshot.Save(t.Context(), source(c.Endpoints()...), repo, snapshot.SaveOptions{}); err != nil {
		t.Fatalf("save beside an unreadable manifest: %v", err)
	}
	all, err := snapshot.List(t.Context(), repo, "")
	if err != nil || len(all) != 2 || all[0].Problem == "" || all[0].Schema != 0 || !all[1].Good() {
		t.Fatalf("%+v, %v; want one that cannot be read and a good one", all, err)
	}
	if v, err := snapshot.Verify(t.Context(), repo, all[0], snapshot.VerifyOptions{Now: time.Now}); err != nil || v.Result != snapshot.ResultUnknown {
		t.Errorf("verify of what cannot be read: %+v, %v; want unknown", v, err)
	}
	copied, err := snapshot.CopyBackups(t.Context(), repo, store.NewFolder(t.TempDir()), snapshot.CopyOptions{})
	if !errors.Is(err, snapshot.ErrNotCopied) || len(copied) != 2 || copied[0].Copied || copied[0].Problem == "" || !copied[1].Copied {
		t.Errorf("copy: %+v, %v; want one copied, and the other one told", copied, err)
	}
	repo.err = store.ErrUnreachable
	if _, err := snapshot.List(t.Context(), repo, ""); !errors.Is(err, store.ErrUnreachable) {
		t.Errorf("a store that cannot be reached: %v", err)
	}
	repo.broken, repo.err = ".json", errors.New("input/output error")
	repo.only = ".verify-"
	if all, err = snapshot.List(t.Context(), repo, ""); err != nil || len(all) != 2 || all[0].Verified != nil || !all[0].Good() {
		t.Errorf("an unreadable record: %+v, %v; want none", all, err)
	}
}

// Who restores the latest learns of younger ones that are not it.
func TestLatestTellsWhatItPassesOver(t *testing.T) {
	t.Parallel()
	for why, spoil := range map[string]func(*testing.T, *store.Folder, *snapshot.Backup){
		"its data object is missing": func(t *testing.T, repo *store.Folder, b *snapshot.Backup) {
			if err := os.Remove(data(repo, b)); err != nil {
				t.Fatal(err)
			}
		},
		"taken without quorum": func(t *testing.T, repo *store.Folder, b *snapshot.Backup) {
			edit(t, repo.Path(b.ClusterID+"/"+b.Name+".json"), func(raw []byte) []byte {
				return bytes.Replace(raw, []byte(`"quorum": true`), []byte(`"quorum": false`), 1)
			})
		},
	} {
		t.Run(why, func(t *testing.T) {
			c, repo := cluster(t, 1, 3), store.NewFolder(t.TempDir())
			if _, err := snapshot.Save(t.Context(), source(c.Endpoints()...), repo, snapshot.SaveOptions{}); err != nil {
				t.Fatal(err)
			}
			good := only(t, repo)
			if o, err := snapshot.OpenBackup(t.Context(), repo, "", "latest", snapshot.OpenOptions{}); err != nil || len(o.Notes) > 0 || o.Close() != nil {
				t.Fatalf("%+v, %v; want nothing to note", o, err)
			}
			younger := func() time.Time { return time.Now().Add(time.Minute) }
			if _, err := snapshot.Save(t.Context(), source(c.Endpoints()...), repo, snapshot.SaveOptions{Now: younger}); err != nil {
				t.Fatal(err)
			}
			all, err := snapshot.List(t.Context(), repo, "")
			if err != nil || len(all) != 2 {
				t.Fatalf("%d backups, %v", len(all), err)
			}
			spoil(t, repo, all[1])
			o, err := snapshot.OpenBackup(t.Context(), repo, "", "latest", snapshot.OpenOptions{})
			if why == "its data object is missing" {
				if !errors.Is(err, snapshot.ErrYounger) || !strings.Contains(err.Error(), all[1].Name+": "+why) {
					t.Errorf("%v; want that %s cannot be used", err, all[1].Name)
				}
				o, err = snapshot.OpenBackup(t.Context(), repo, "", "latest", snapshot.OpenOptions{OlderOK: true})
			}
			if err != nil || o.Manifest.Name != good.Name || len(o.Notes) != 1 || !strings.Contains(o.Notes[0], all[1].Name+" is passed over: "+why) {
				t.Errorf("%+v, %v; want the good one and a note of %s", o, err, all[1].Name)
			}
			if err := o.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestAManifestThatNamesAnothersDataIsAProblem(t *testing.T) {
	t.Parallel()
	repo, b := saved(t, snapshot.SaveOptions{})
	edit(t, repo.Path(b.ClusterID+"/"+b.Name+".json"), func(raw []byte) []byte {
		return bytes.ReplaceAll(raw, []byte(b.Data), []byte("another.db"))
	})
	if b := only(t, repo); b.Problem == "" || b.Schema != 0 {
		t.Errorf("got %+v, want a problem", b)
	}
}

func TestADamagedSnapshotDoesNotReplaceTheOldFile(t *testing.T) {
	t.Parallel()
	c := cluster(t, 1, 3)
	file := filepath.Join(t.TempDir(), "b.db")
	if _, err := snapshot.SaveFile(t.Context(), source(c.Endpoints()...), file, snapshot.SaveOptions{}); err != nil {
		t.Fatal(err)
	}
	damaged := tamper(t, c.Endpoints()[0], func(all [][]byte) [][]byte {
		whole := bytes.Join(all, nil)
		db := whole[:len(whole)-sha256.Size]
		clear(db[2*4096:]) // all but the meta pages
		sum := sha256.Sum256(db)
		return [][]byte{db, sum[:]}
	})
	if _, err := snapshot.SaveFile(t.Context(), damaged, file, snapshot.SaveOptions{}); !errors.Is(err, mvccdb.ErrDamaged) {
		t.Fatalf("save: %v, want that it is damaged", err)
	}
	v, err := snapshot.VerifyFile(t.Context(), file, snapshot.VerifyOptions{Now: time.Now})
	if err != nil || !v.OK {
		t.Errorf("the old file: %+v, %v; want it as it was", v, err)
	}
	if entries, err := os.ReadDir(filepath.Dir(file)); err != nil || len(entries) != 2 {
		t.Errorf("%v, %v; want the file and its manifest", entries, err)
	}
}
