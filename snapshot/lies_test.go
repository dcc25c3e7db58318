package snapshot_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/etcdkit/etcdkit/internal/store"
	"github.com/etcdkit/etcdkit/internal/testing/etcdtest"
	"github.com/etcdkit/etcdkit/snapshot"
)

// kept returns the names of the manifests and data objects in a folder.
func kept(t *testing.T, repo *store.Folder) (manifests, data int) {
	t.Helper()
	objects, err := repo.List(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range objects {
		switch {
		case strings.HasSuffix(o.Key, ".json"):
			manifests++
		case strings.HasSuffix(o.Key, ".db"):
			data++
		}
	}
	return manifests, data
}

// saves makes a repository with so many backups.
func saves(t *testing.T, n int) (*store.Folder, snapshot.Source) {
	t.Helper()
	c, repo := cluster(t, 1, 3), store.NewFolder(t.TempDir())
	for range n {
		if _, err := snapshot.Save(t.Context(), source(c.Endpoints()...), repo, snapshot.SaveOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	return repo, source(c.Endpoints()...)
}

func TestNothingIsDeletedOnTheWordOfOneListing(t *testing.T) {
	const stale = 48 * time.Hour
	last := snapshot.Policy{Last: 5}
	for name, tc := range map[string]struct {
		bent   bentStore
		policy snapshot.Policy
	}{
		"a listing without manifests":             {bentStore{hidden: ".json", ahead: stale}, last},
		"a listing without data":                  {bentStore{hidden: ".db"}, snapshot.Policy{Last: 3}},
		"without manifests, and nobody to ask":    {bentStore{hidden: ".json", ahead: stale, stat: errors.New("no answer")}, last},
		"without data, and nobody to ask":         {bentStore{hidden: ".db", stat: errors.New("no answer")}, snapshot.Policy{Last: 1}},
		"a manifest that cannot be read":          {bentStore{broken: ".json", err: errors.New("no answer")}, snapshot.Policy{Last: 1}},
		"a manifest that cannot be had":           {bentStore{broken: ".json", err: store.ErrNotExist}, snapshot.Policy{Last: 1}},
		"listings without anything but manifests": {bentStore{hidden: ".db", ahead: stale}, snapshot.Policy{Last: 3}},
	} {
		t.Run(name, func(t *testing.T) {
			repo, src := saves(t, 3)
			tc.bent.Folder = repo
			_, err := snapshot.Prune(t.Context(), &tc.bent, snapshot.PruneOptions{Policy: tc.policy, Now: tc.bent.now})
			if err != nil {
				t.Error(err)
			}
			_, err = snapshot.Save(t.Context(), src, &tc.bent, snapshot.SaveOptions{Now: tc.bent.now})
			if manifests, data := kept(t, repo); manifests < 3 || data < 3 {
				t.Errorf("%d manifests and %d data objects are left of three backups, %v", manifests, data, err)
			}
		})
	}
}

func TestDataThatArrivesBeforeItsManifestIsNoLeftover(t *testing.T) {
	repo, src := saves(t, 1)
	b := only(t, repo)
	manifest, long := repo.Path(b.ClusterID+"/"+b.Name+".json"), time.Now().Add(-48*time.Hour)
	raw, err := os.ReadFile(manifest)
	if err != nil {
		t.Fatal(err)
	}
	// As rsync brings it: under its own time.
	if err := errors.Join(os.Remove(manifest), os.Chtimes(data(repo, b), long, long)); err != nil {
		t.Fatal(err)
	}
	if _, err := snapshot.Save(t.Context(), src, repo, snapshot.SaveOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(manifest, raw, 0o600); err != nil {
		t.Fatal(err)
	}
	if all, err := snapshot.List(t.Context(), repo, ""); err != nil || len(all) != 2 || !all[0].Good() {
		t.Errorf("%+v, %v; want the old one whole", all, err)
	}
}

func TestARepositoryIsReadThroughLinksAsItWasWritten(t *testing.T) {
	repo, src := saves(t, 1)
	b := only(t, repo)
	elsewhere := filepath.Join(t.TempDir(), "moved.db")
	if err := errors.Join(os.Rename(data(repo, b), elsewhere), os.Symlink(elsewhere, data(repo, b))); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(strings.TrimSuffix(repo.URL(), "/"), link); err != nil {
		t.Fatal(err)
	}
	linked := store.NewFolder(link)
	if _, err := snapshot.Save(t.Context(), src, linked, snapshot.SaveOptions{}); err != nil {
		t.Fatal(err)
	}
	if all, err := snapshot.List(t.Context(), linked, ""); err != nil || len(all) != 2 || !all[0].Good() || !all[1].Good() {
		t.Fatalf("%+v, %v; want two good ones", all, err)
	}
	// A disk that is not mounted: nobody knows what is there.
	if err := os.Rename(elsewhere, elsewhere+".away"); err != nil {
		t.Fatal(err)
	}
	p, err := snapshot.Prune(t.Context(), linked, snapshot.PruneOptions{Policy: snapshot.Policy{Last: 1}, Now: time.Now})
	if err != nil || len(p.Decisions) != 2 || !p.Decisions[0].Keep || !strings.Contains(p.Decisions[0].Reasons[0], "symbolic link") {
		t.Errorf("%+v, %v; want that the backup behind the link is kept", p, err)
	}
}

func TestUnreadableIsNotAbsent(t *testing.T) {
	repo, src := saves(t, 2)
	all, err := snapshot.List(t.Context(), repo, "")
	if err != nil || len(all) != 2 {
		t.Fatal(all, err)
	}
	newest := all[1].Name
	for name, tc := range map[string]struct {
		err    error
		times  int
		latest bool
	}{
		"an error that passes":             {syscall.EIO, 2, true},
		"an error that stays":              {syscall.EIO, 0, false},
		"a listed object that is not had":  {store.ErrNotExist, 0, false},
		"one that is had at the next look": {store.ErrNotExist, 1, true},
		"another error":                    {errors.New("internal error"), 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			bent := func() *bentStore {
				return &bentStore{Folder: repo, broken: newest + ".json", err: tc.err, times: tc.times}
			}
			o, err := snapshot.OpenBackup(t.Context(), bent(), "", "latest", snapshot.OpenOptions{})
			if tc.latest && (err != nil || o.Manifest.Name != newest) || !tc.latest && !errors.Is(err, snapshot.ErrYounger) {
				t.Errorf("latest: %v", err)
			}
			old, err := snapshot.OpenBackup(t.Context(), bent(), "", "latest", snapshot.OpenOptions{OlderOK: true})
			if err != nil || (old.Manifest.Name == newest) != tc.latest {
				t.Errorf("an older one will do: %v", err)
			}
			now := time.Now().Add(time.Hour)
			age, err := snapshot.Age(t.Context(), bent(), "", time.Minute, 0, now)
			if want := map[bool]error{true: snapshot.ErrTooOld, false: snapshot.ErrUnread}[tc.latest]; !errors.Is(err, want) {
				t.Errorf("age: %+v, %v; want %v", age, err, want)
			}
			if age, err := snapshot.Age(t.Context(), bent(), "", 2*time.Hour, 0, now); err != nil || (len(age.Notes) == 0) != tc.latest {
				t.Errorf("an older one is young enough: %+v, %v", age, err)
			}
			listed, err := snapshot.List(t.Context(), bent(), "")
			if err != nil || len(listed) != 2 {
				t.Errorf("list: %+v, %v", listed, err)
			}
			for _, b := range listed {
				if (b.Unread() == "") != (tc.latest || b.Name != newest) {
					t.Errorf("list: %s is unread: %q", b.Name, b.Unread())
				}
			}
			saved, err := snapshot.Save(t.Context(), src, bent(), snapshot.SaveOptions{})
			if err != nil || saved.Manifest.Lineage != all[0].Lineage {
				t.Errorf("save: %v; want that the lineage goes on", err)
			}
			for _, key := range []string{saved.Manifest.Name + ".json", saved.Manifest.Data} {
				if err := repo.Delete(t.Context(), saved.Manifest.ClusterID+"/"+key); err != nil {
					t.Error(err)
				}
			}
		})
	}
	empty := &bentStore{Folder: repo, broken: ".json", err: syscall.EIO}
	if age, err := snapshot.Age(t.Context(), empty, "", time.Hour, 0, time.Now()); !errors.Is(err, snapshot.ErrUnread) {
		t.Errorf("nothing readable: %+v, %v; want that nobody knows", age, err)
	}
}

func TestNoClockAloneDeletesBackups(t *testing.T) {
	const year = 365 * 24 * time.Hour
	within := snapshot.Policy{Within: 36 * time.Hour}
	for name, tc := range map[string]struct {
		store, local time.Duration // how far the clocks are ahead
		force        bool
		policy       snapshot.Policy
		deleted      int
	}{
		"both a year ahead":            {year, year, false, within, 0},
		"the local one a year ahead":   {0, year, false, within, 0},
		"the storage a year ahead":     {year, 0, false, within, 0},
		"both a year ahead, by count":  {year, year, false, snapshot.Policy{Last: 1}, 0},
		"both, and told to":            {year, year, true, within, 2},
		"the local one, and told to":   {0, year, true, within, 0},
		"the clocks are right":         {0, 0, false, snapshot.Policy{Last: 1}, 2},
		"within, and clocks are right": {0, 0, false, within, 0},
	} {
		t.Run(name, func(t *testing.T) {
			repo, _ := saves(t, 3)
			bent := &bentStore{Folder: repo, ahead: tc.store}
			local := func() time.Time { return time.Now().Add(tc.local) }
			p, err := snapshot.Prune(t.Context(), bent, snapshot.PruneOptions{Policy: tc.policy, Force: tc.force, Now: local})
			manifests, data := kept(t, repo)
			if manifests != 3-tc.deleted || data != 3-tc.deleted {
				t.Errorf("%d and %d are left; %+v, %v", manifests, data, p, err)
			}
			doomed := 0
			for _, d := range p.Decisions {
				if !d.Keep {
					doomed++
				}
			}
			if refused := doomed > 0 && tc.deleted == 0; errors.Is(err, snapshot.ErrUnsureTime) != refused {
				t.Errorf("%v; want it refused: %t", err, refused)
			}
		})
	}
}

// A run that cleans up with a wrong clock spares what another host is writing.
func TestAWrongClockCleansNothingUp(t *testing.T) {
	const ahead = 48 * time.Hour
	for name, storage := range map[string]time.Duration{"the local clock": 0, "both clocks": ahead} {
		t.Run(name, func(t *testing.T) {
			repo, src := saves(t, 3)
			all, err := snapshot.List(t.Context(), repo, "")
			if err != nil {
				t.Fatal(err)
			}
			part := repo.Path(all[0].ClusterID + "/20260102T030405Z-00000000000000aa-44556677.db")
			if err := os.WriteFile(part, []byte("x"), 0o600); err != nil {
				t.Fatal(err)
			}
			bent := &bentStore{Folder: repo, ahead: storage}
			opts := snapshot.SaveOptions{Now: func() time.Time { return time.Now().Add(ahead) }}
			saved, err := snapshot.Save(t.Context(), src, bent, opts)
			if _, statErr := os.Stat(part); err != nil || statErr != nil {
				t.Errorf("%+v, %v, %v; want it left alone", saved, err, statErr)
			}
		})
	}
}

func TestACopyGoesOnBehindARottenBackup(t *testing.T) {
	repo, _ := saves(t, 3)
	all, err := snapshot.List(t.Context(), repo, "")
	if err != nil {
		t.Fatal(err)
	}
	edit(t, data(repo, all[1]), func(raw []byte) []byte { raw[len(raw)/2] ^= 1; return raw })
	to := store.NewFolder(t.TempDir())
	copied, err := snapshot.CopyBackups(t.Context(), repo, to, snapshot.CopyOptions{})
	if !errors.Is(err, snapshot.ErrIncomplete) || len(copied) != 3 || !copied[0].Copied || copied[1].Problem == "" || !copied[2].Copied {
		t.Errorf("%+v, %v; want two copied and one told", copied, err)
	}
	if there, err := snapshot.List(t.Context(), to, ""); err != nil || len(there) != 2 {
		t.Errorf("%d are there, %v; want two", len(there), err)
	}
}

// A store that accepts and forgets, and a cleanup on another host, leave no backup.
func TestSavedMeansStored(t *testing.T) {
	for name, forget := range map[string]string{"the manifest": ".json", "the data": ".db"} {
		t.Run(name, func(t *testing.T) {
			repo, src := saves(t, 1)
			saved, err := snapshot.Save(t.Context(), src, &bentStore{Folder: repo, forget: forget}, snapshot.SaveOptions{})
			if !errors.Is(err, snapshot.ErrNotStored) {
				t.Errorf("%+v, %v; want that it is not stored", saved, err)
			}
			if manifests, data := kept(t, repo); manifests != 1 || data != 1 {
				t.Errorf("%d manifests and %d data objects are left, want the one before", manifests, data)
			}
		})
	}
}

func TestASnapshotReplacesOnlyAnOlderOneOfItsCluster(t *testing.T) {
	c, other := cluster(t, 1, 3), cluster(t, 1, 3)
	src := source(c.Endpoints()...)
	client := etcdtest.Client(t, c.Endpoints()...)
	save := func(t *testing.T, from snapshot.Source, name string, opts snapshot.SaveOptions) *snapshot.Saved {
		t.Helper()
		saved, err := snapshot.SaveFile(t.Context(), from, name, opts)
		if err != nil {
			t.Fatal(err)
		}
		return saved
	}
	write := func(t *testing.T, name, content string) {
		t.Helper()
		if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, tc := range map[string]struct {
		before  func(t *testing.T, file string)
		refused bool
		noted   bool
	}{
		"nothing":      {func(*testing.T, string) {}, false, false},
		"an older one": {func(t *testing.T, f string) { save(t, src, f, snapshot.SaveOptions{}) }, false, true},
		"an older one, compressed": {func(t *testing.T, f string) {
			save(t, src, f, snapshot.SaveOptions{Codec: snapshot.Codec{Compression: "zstd"}})
		}, false, true},
		"an older one without manifest":    {func(t *testing.T, f string) { save(t, src, f, snapshot.SaveOptions{}); _ = os.Remove(f + ".json") }, false, true},
		"another cluster's":                {func(t *testing.T, f string) { save(t, source(other.Endpoints()...), f, snapshot.SaveOptions{}) }, true, false},
		"another file":                     {func(t *testing.T, f string) { write(t, f, "important") }, true, false},
		"a JSON file of somebody else":     {func(t *testing.T, f string) { write(t, f+".json", `{"mine": 1}`) }, true, false},
		"another manifest beside the file": {func(t *testing.T, f string) { save(t, src, f, snapshot.SaveOptions{}); write(t, f+".json", `{}`) }, true, false},
		"a newer one": {func(t *testing.T, f string) {
			save(t, src, f, snapshot.SaveOptions{})
			edit(t, f+".json", func(raw []byte) []byte {
				return regexp.MustCompile(`"revision": \d+`).ReplaceAll(raw, []byte(`"revision": 99999`))
			})
		}, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "nightly.db")
			tc.before(t, file)
			was, _ := os.ReadFile(file)
			if _, err := client.Put(t.Context(), "/key/more", name); err != nil {
				t.Fatal(err)
			}
			saved, err := snapshot.SaveFile(t.Context(), src, file, snapshot.SaveOptions{})
			if errors.Is(err, snapshot.ErrOverwrite) != tc.refused || (err == nil) == tc.refused {
				t.Fatalf("%v; want it refused: %t", err, tc.refused)
			}
			if is, _ := os.ReadFile(file); tc.refused && !bytes.Equal(is, was) {
				t.Error("the file was changed")
			}
			if !tc.refused && (len(saved.Notes) == 1) != tc.noted {
				t.Errorf("notes: %v", saved.Notes)
			}
			if tc.refused {
				save(t, src, file, snapshot.SaveOptions{Overwrite: true})
			}
			if v, err := snapshot.VerifyFile(t.Context(), file, snapshot.VerifyOptions{Now: time.Now}); err != nil || !v.OK {
				t.Errorf("%+v, %v; want file and manifest to belong together", v, err)
			}
		})
	}
}

func TestTwoSavesToOneFileLeaveAPair(t *testing.T) {
	src, file := source(cluster(t, 1, 3).Endpoints()...), filepath.Join(t.TempDir(), "b.db")
	errs := make(chan error, 6)
	for i := range cap(errs) {
		go func() {
			opts := snapshot.SaveOptions{Overwrite: true}
			if i%2 == 0 {
				opts.Compression = "zstd"
			}
			_, err := snapshot.SaveFile(t.Context(), src, file, opts)
			errs <- err
		}()
	}
	for range cap(errs) {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
	if v, err := snapshot.VerifyFile(t.Context(), file, snapshot.VerifyOptions{Now: time.Now}); err != nil || !v.OK {
		t.Errorf("%+v, %v; want file and manifest to belong together", v, err)
	}
}

func TestAKeptBackupIsNotPruned(t *testing.T) {
	repo, src := saves(t, 1)
	marked, err := snapshot.Save(t.Context(), src, repo, snapshot.SaveOptions{Keep: true})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := snapshot.Save(t.Context(), src, repo, snapshot.SaveOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := snapshot.Prune(t.Context(), repo, snapshot.PruneOptions{Policy: snapshot.Policy{Last: 1}, Now: time.Now}); err != nil {
		t.Fatal(err)
	}
	all, err := snapshot.List(t.Context(), repo, "")
	if err != nil || len(all) != 2 || all[0].Name != marked.Manifest.Name {
		t.Errorf("%+v, %v; want the marked one and the newest", all, err)
	}
}
