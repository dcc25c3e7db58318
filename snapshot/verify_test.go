package snapshot_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"filippo.io/age"

	"github.com/etcdkit/etcdkit/internal/store"
	"github.com/etcdkit/etcdkit/snapshot"
)

// saved takes a backup into a new folder.
func saved(t *testing.T, opts snapshot.SaveOptions) (*store.Folder, *snapshot.Backup) {
	t.Helper()
	c := cluster(t, 1, 20)
	repo := store.NewFolder(t.TempDir())
	if _, err := snapshot.Save(t.Context(), source(c.Endpoints()...), repo, opts); err != nil {
		t.Fatal(err)
	}
	return repo, only(t, repo)
}

// only returns the one backup of a repository.
func only(t *testing.T, repo store.Store) *snapshot.Backup {
	t.Helper()
	all, err := snapshot.List(t.Context(), repo, "")
	if err != nil || len(all) != 1 {
		t.Fatalf("%d backups, %v; want one", len(all), err)
	}
	return all[0]
}

func data(repo *store.Folder, b *snapshot.Backup) string {
	return repo.Path(b.ClusterID + "/" + b.Data)
}

func TestVerifyReachesTheLevelAskedFor(t *testing.T) {
	t.Parallel()
	identity, _ := age.GenerateX25519Identity()
	other, _ := age.GenerateX25519Identity()
	encrypted := snapshot.Codec{Compression: "zstd", Recipients: []age.Recipient{identity.Recipient()}}
	ids := []age.Identity{identity}
	for name, tc := range map[string]struct {
		codec  snapshot.Codec
		opts   snapshot.VerifyOptions
		level  snapshot.Level
		result snapshot.Result
	}{
		"plain, by default decoded":          {snapshot.Codec{}, snapshot.VerifyOptions{}, snapshot.LevelDecoded, snapshot.ResultOK},
		"plain, stored":                      {snapshot.Codec{}, snapshot.VerifyOptions{Level: snapshot.LevelStored}, snapshot.LevelStored, snapshot.ResultOK},
		"compressed":                         {snapshot.Codec{Compression: "zstd"}, snapshot.VerifyOptions{}, snapshot.LevelDecoded, snapshot.ResultOK},
		"a drill":                            {snapshot.Codec{Compression: "zstd"}, snapshot.VerifyOptions{Level: snapshot.LevelRestored}, snapshot.LevelRestored, snapshot.ResultOK},
		"encrypted, with identity":           {encrypted, snapshot.VerifyOptions{Identities: ids}, snapshot.LevelDecoded, snapshot.ResultOK},
		"encrypted, without: stored is all":  {encrypted, snapshot.VerifyOptions{}, snapshot.LevelStored, snapshot.ResultOK},
		"encrypted, with another's":          {encrypted, snapshot.VerifyOptions{Identities: []age.Identity{other}}, snapshot.LevelStored, snapshot.ResultUnknown},
		"encrypted, without, decoded wanted": {encrypted, snapshot.VerifyOptions{Level: snapshot.LevelDecoded}, snapshot.LevelStored, snapshot.ResultUnknown},
	} {
		t.Run(name, func(t *testing.T) {
			repo, b := saved(t, snapshot.SaveOptions{Codec: tc.codec})
			tc.opts.Now = time.Now
			v, err := snapshot.Verify(t.Context(), repo, b, tc.opts)
			if err != nil || v.Level != tc.level || v.Result != tc.result || v.OK != (tc.result == snapshot.ResultOK) {
				t.Errorf("got %+v, %v; want level %s, %s", v, err, tc.level, tc.result)
			}
			if tc.level == snapshot.LevelDecoded && (v.Keys == nil || *v.Keys != 20 || v.Revision != 21) {
				t.Errorf("keys %v, revision %d; want 20 and 21", v.Keys, v.Revision)
			}
			if recorded := only(t, repo).Verified; (recorded != nil) != (tc.result != snapshot.ResultUnknown) {
				t.Errorf("record: %+v", recorded)
			}
		})
	}
}

func TestVerifyFindsDamage(t *testing.T) {
	t.Parallel()
	for name, damage := range map[string]func(t *testing.T, file string){
		"a bit flipped": func(t *testing.T, file string) {
			edit(t, file, func(raw []byte) []byte { raw[len(raw)/2] ^= 1; return raw })
		},
		"cut short": func(t *testing.T, file string) { edit(t, file, func(raw []byte) []byte { return raw[:len(raw)-100] }) },
		"gone": func(t *testing.T, file string) {
			if err := os.Remove(file); err != nil {
				t.Fatal(err)
			}
		},
	} {
		for how, codec := range map[string]snapshot.Codec{"plain": {}, "compressed": {Compression: "zstd"}} {
			t.Run(name+" "+how, func(t *testing.T) {
				repo, b := saved(t, snapshot.SaveOptions{Codec: codec})
				damage(t, data(repo, b))
				v, err := snapshot.Verify(t.Context(), repo, only(t, repo), snapshot.VerifyOptions{Now: time.Now})
				if err != nil || v.Result != snapshot.ResultBad {
					t.Errorf("got %+v, %v; want bad", v, err)
				}
				if b := only(t, repo); b.Good() {
					t.Error("the damaged backup still counts as good")
				}
			})
		}
	}
}

func edit(t *testing.T, file string, fn func([]byte) []byte) {
	t.Helper()
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, fn(raw), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestVerifyAFile(t *testing.T) {
	t.Parallel()
	c := cluster(t, 1, 5)
	dir := t.TempDir()
	file := filepath.Join(dir, "b.db")
	if _, err := snapshot.SaveFile(t.Context(), source(c.Endpoints()...), file, snapshot.SaveOptions{}); err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		data []byte
		want snapshot.Result
	}{
		"whole": {raw, snapshot.ResultOK},
		"without trailer (gardener/etcd-backup-restore#749)": {raw[:len(raw)-32], snapshot.ResultUnknown},
		"truncated": {raw[:len(raw)/2+7], snapshot.ResultBad},
		"text":      {[]byte(strings.Repeat("hello\n", 100)), snapshot.ResultBad},
		"empty":     {nil, snapshot.ResultBad},
	} {
		t.Run(name, func(t *testing.T) {
			bare := filepath.Join(t.TempDir(), "bare.db")
			if err := os.WriteFile(bare, tc.data, 0o600); err != nil {
				t.Fatal(err)
			}
			v, err := snapshot.VerifyFile(t.Context(), bare, snapshot.VerifyOptions{Now: time.Now})
			if err != nil || v.Result != tc.want {
				t.Errorf("got %+v, %v; want %s", v, err, tc.want)
			}
		})
	}
	bare := filepath.Join(t.TempDir(), "bare.db")
	if err := os.WriteFile(bare, raw, 0o600); err != nil {
		t.Fatal(err)
	}
	v, err := snapshot.VerifyFile(t.Context(), bare, snapshot.VerifyOptions{Level: snapshot.LevelStored, Now: time.Now})
	if err != nil || v.Result != snapshot.ResultUnknown || len(v.Checks) != 1 {
		t.Errorf("stored, without a manifest: %+v, %v; want unknown", v, err)
	}
	// etcd-io/etcd PR #8815: looking changes nothing.
	if after, err := os.ReadFile(file); err != nil || string(after) != string(raw) {
		t.Errorf("the file changed: %v", err)
	}
}

func TestClean(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		key     string
		old     bool
		dead    bool // the run's file is there and free
		removed bool
	}{
		"data of a dead run":             {"0123456789abcdef/20260102T030405Z-00000000000000aa-00112233.db.zst", false, true, true},
		"a part of a dead run":           {"0123456789abcdef/.20260102T030405Z-00000000000000aa-00112233.db.ff00ff00.part", false, true, true},
		"young data of an unknown run":   {"0123456789abcdef/20260102T030405Z-00000000000000aa-44556677.db", false, false, false},
		"old data of an unknown run":     {"0123456789abcdef/20260102T030405Z-00000000000000aa-44556677.db", true, false, true},
		"an old part of an unknown run":  {"0123456789abcdef/.20260102T030405Z-00000000000000aa-44556677.db.ff00ff00.part", true, false, true},
		"an old file of somebody else":   {"0123456789abcdef/notes.txt", true, false, false},
		"an old file that only looks so": {"other/20260102T030405Z-00000000000000aa-44556677.db", true, false, false},
		"an old part of somebody else":   {"0123456789abcdef/.upload.part", true, false, false},
		"a record without its backup":    {"0123456789abcdef/20260102T030405Z-00000000000000aa-44556677.verify-20260102T030406Z.json", true, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			repo := store.NewFolder(filepath.Join(t.TempDir(), "repo"))
			runs := snapshot.Runs{Dir: t.TempDir()}
			file := repo.Path(tc.key)
			if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(file, []byte("x"), 0o600); err != nil {
				t.Fatal(err)
			}
			late := &bentStore{Folder: repo}
			if tc.old {
				late.ahead = 48 * time.Hour
			}
			if tc.dead {
				if err := os.WriteFile(filepath.Join(runs.Dir, "00112233.run"), []byte(`{"repository":"`+repo.URL()+`"}`), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			found, err := snapshot.Clean(context.Background(), late, snapshot.CleanOptions{Runs: runs, Now: late.now})
			_, statErr := os.Stat(file)
			if err != nil || os.IsNotExist(statErr) != tc.removed || (len(found) == 1) != tc.removed {
				t.Errorf("clean: %+v, %v; stat: %v; want it removed: %t", found, err, statErr, tc.removed)
			}
			// A dead run's file stays for a while: more of it may come to light.
			if left, _ := os.ReadDir(runs.Dir); len(left) == 1 != tc.dead {
				t.Errorf("run files left: %v", left)
			}
		})
	}
}
