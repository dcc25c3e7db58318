package snapshot_test

import (
	"context"
	"crypto/rand"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"aead.dev/minisign"

	"github.com/etcdkit/etcdkit/internal/store"
	"github.com/etcdkit/etcdkit/snapshot"
)

// signer makes a key, and a signing that trusts it.
func signer(t *testing.T) snapshot.Signing {
	t.Helper()
	public, private, err := minisign.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return snapshot.Signing{Key: &private, Trust: []minisign.PublicKey{public}}
}

// put stores a file in a folder, in the place of another one.
func put(t *testing.T, name string, content []byte) {
	t.Helper()
	if err := os.WriteFile(name, content, 0o600); err != nil {
		t.Fatal(err)
	}
}

func bytesOf(t *testing.T, name string) []byte {
	t.Helper()
	raw, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// What somebody does who may write to the bucket and has no key.
func TestOnlyWhatATrustedKeySignedCounts(t *testing.T) {
	t.Parallel()
	member, ours, foreign := cluster(t, 1, 3), signer(t), signer(t)
	for name, attack := range map[string]func(t *testing.T, dir, older, newer string){
		"the signature is gone": func(t *testing.T, dir, _, newer string) {
			if err := os.Remove(filepath.Join(dir, newer+".json.minisig")); err != nil {
				t.Fatal(err)
			}
		},
		"the manifest says something else": func(t *testing.T, dir, _, newer string) {
			manifest := filepath.Join(dir, newer+".json")
			put(t, manifest, []byte(strings.Replace(string(bytesOf(t, manifest)), `"quorum": true`, `"quorum":true `, 1)))
		},
		"somebody else signed it": func(t *testing.T, dir, _, newer string) {
			resign(t, foreign, filepath.Join(dir, newer+".json"), newer+".json")
		},
		"it is the manifest of an older one": func(t *testing.T, dir, older, newer string) {
			for _, ending := range []string{".json", ".json.minisig"} {
				put(t, filepath.Join(dir, newer+ending), bytesOf(t, filepath.Join(dir, older+ending)))
			}
		},
		"it is signed under another name": func(t *testing.T, dir, older, newer string) {
			resign(t, ours, filepath.Join(dir, newer+".json"), older+".json")
		},
		"the signature is no signature": func(t *testing.T, dir, _, newer string) {
			put(t, filepath.Join(dir, newer+".json.minisig"), []byte("untrusted comment: x\nRWQ\n"))
		},
		"the signature does not end": func(t *testing.T, dir, _, newer string) {
			put(t, filepath.Join(dir, newer+".json.minisig"), make([]byte, 1<<20))
		},
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			repo := ours.Repository(store.NewFolder(root))
			var names []string
			for range 2 {
				saved, err := snapshot.Save(t.Context(), source(member.Endpoints()...), repo, snapshot.SaveOptions{})
				if err != nil {
					t.Fatal(err)
				}
				names = append(names, saved.Manifest.Name)
			}
			_, all, err := snapshot.Choose(t.Context(), repo, snapshot.Choice{Name: "latest"})
			if err != nil || all[1].Name != names[1] {
				t.Fatalf("before the attack: %v", err)
			}
			attack(t, filepath.Join(root, all[1].ClusterID), names[0], names[1])
			judgeAttacked(t, repo, names)
		})
	}
}

// resign signs a file with a key under a name.
func resign(t *testing.T, with snapshot.Signing, file, name string) {
	t.Helper()
	message := minisign.NewReader(strings.NewReader(string(bytesOf(t, file))))
	if _, err := io.Copy(io.Discard, message); err != nil {
		t.Fatal(err)
	}
	put(t, file+".minisig", message.SignWithComments(*with.Key, "file:"+name, ""))
}

// judgeAttacked looks at a repository of which the newer of two backups is not to
// be trusted.
func judgeAttacked(t *testing.T, repo store.Store, names []string) {
	t.Helper()
	if _, _, err := snapshot.Choose(t.Context(), repo, snapshot.Choice{Name: "latest"}); !errors.Is(err, snapshot.ErrYounger) {
		t.Errorf("latest: %v, want it to name the younger one", err)
	}
	latest, _, err := snapshot.Choose(t.Context(), repo, snapshot.Choice{Name: "latest", OlderOK: true})
	if err != nil || latest.Name != names[0] {
		t.Errorf("latest, older too: %v", err)
	}
	if _, err := snapshot.OpenBackup(t.Context(), repo, "", names[1], snapshot.OpenOptions{}); !errors.Is(err, snapshot.ErrIncomplete) {
		t.Errorf("open: %v", err)
	}
	age, err := snapshot.Age(t.Context(), repo, "", time.Hour, 0, time.Now())
	if err != nil || age.Newest != names[0] || len(age.Notes) != 1 || !strings.Contains(age.Notes[0], names[1]) {
		t.Errorf("age: %+v, %v", age, err)
	}
	attacked, _, err := snapshot.Choose(t.Context(), repo, snapshot.Choice{Name: names[1]})
	if err != nil {
		t.Fatal(err)
	}
	v, err := snapshot.Verify(t.Context(), repo, attacked, snapshot.VerifyOptions{Now: time.Now})
	if err != nil || v.Result != snapshot.ResultBad {
		t.Errorf("verify: %+v, %v", v, err)
	}
	pruned, err := snapshot.Prune(t.Context(), repo, snapshot.PruneOptions{Policy: snapshot.Policy{Last: 1}, Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range pruned.Decisions {
		if !d.Keep {
			t.Errorf("%s would go: %v", d.Backup.Name, d.Reasons)
		}
	}
}

// Whoever could mark good backups as bad, or old ones as the state of today, would
// have the right one passed over, or the alarm silenced.
func TestRecordsCountOnlySigned(t *testing.T) {
	t.Parallel()
	ours, root := signer(t), t.TempDir()
	plain := store.NewFolder(root)
	repo := ours.Repository(plain)
	saved, err := snapshot.Save(t.Context(), source(cluster(t, 1, 3).Endpoints()...), repo, snapshot.SaveOptions{})
	if err != nil {
		t.Fatal(err)
	}
	m := saved.Manifest
	dir := filepath.Join(root, m.ClusterID)
	put(t, filepath.Join(dir, m.Name+".verify-20260102T030405.000Z.json"), []byte(`{"name":"`+m.Name+`","result":"bad","at":"2026-01-02T03:04:05Z"}`))
	later := strings.Replace(m.Name, m.Name[:8], "20991231", 1)
	put(t, filepath.Join(dir, later+".seen.json"), []byte(`{"at":"`+time.Now().Add(time.Minute).UTC().Format(time.RFC3339)+`","backup":"`+m.Name+`"}`))
	for who, tc := range map[string]struct {
		repo store.Store
		good bool
	}{"who trusts nobody": {plain, false}, "who trusts the key": {repo, true}} {
		b, _, err := snapshot.Choose(t.Context(), tc.repo, snapshot.Choice{Name: m.Name})
		if err != nil || b.Good() != tc.good {
			t.Errorf("%s: good is %v, %v", who, b.Good(), err)
		}
	}
	age, err := snapshot.Age(t.Context(), repo, "", time.Hour, 0, time.Now())
	if err != nil || !age.NewestAt.Equal(m.CreatedAt) {
		t.Errorf("age: %+v, %v; want the backup's own time", age, err)
	}
	b, _, err := snapshot.Choose(t.Context(), repo, snapshot.Choice{Name: m.Name})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := snapshot.Verify(t.Context(), repo, b, snapshot.VerifyOptions{Now: time.Now}); err != nil {
		t.Fatal(err)
	}
	if b, _, err = snapshot.Choose(t.Context(), repo, snapshot.Choice{Name: m.Name}); err != nil || b.Verified == nil || !b.Verified.OK {
		t.Errorf("its own record: %+v, %v", b, err)
	}
}

// A signature that cannot be read is not a missing one.
func TestAnUnreadableSignatureIsNotAMissingOne(t *testing.T) {
	t.Parallel()
	ours, repo := signer(t), &bentStore{Folder: store.NewFolder(t.TempDir())}
	if _, err := snapshot.Save(t.Context(), source(cluster(t, 1, 3).Endpoints()...), ours.Repository(repo.Folder), snapshot.SaveOptions{}); err != nil {
		t.Fatal(err)
	}
	repo.broken, repo.err = ".minisig", errors.New("no answer")
	_, err := snapshot.Age(t.Context(), ours.Repository(repo), "", time.Hour, 0, time.Now())
	if !errors.Is(err, snapshot.ErrUnread) {
		t.Errorf("got %v, want that nobody can tell", err)
	}
}

// putOrder notes what is put, and stops at one.
type putOrder struct {
	*store.Folder
	keys []string
	stop string // ending of the key that cannot be put
}

func (p *putOrder) Put(ctx context.Context, key string, src io.Reader, opts store.PutOptions) (int64, error) {
	_, ending, _ := strings.Cut(key, ".")
	p.keys = append(p.keys, ending)
	if p.stop != "" && strings.HasSuffix(key, p.stop) {
		return 0, errors.New("no room")
	}
	return p.Folder.Put(ctx, key, src, opts)
}

// A manifest is never there without its signature, and a signature without its
// manifest does not stay.
func TestASignatureComesBeforeWhatItSignsAndGoesWithIt(t *testing.T) {
	t.Parallel()
	ours, member := signer(t), cluster(t, 1, 3)
	repo := &putOrder{Folder: store.NewFolder(t.TempDir())}
	save := func() error {
		_, err := snapshot.Save(t.Context(), source(member.Endpoints()...), ours.Repository(repo), snapshot.SaveOptions{})
		return err
	}
	if err := save(); err != nil || strings.Join(repo.keys, " ") != "db json.minisig json" {
		t.Fatalf("put %q, %v", repo.keys, err)
	}
	repo.stop = ".json"
	if err := save(); err == nil {
		t.Fatal("no error")
	}
	repo.stop = ""
	for range 2 {
		if err := save(); err != nil {
			t.Fatal(err)
		}
	}
	// Pruning by somebody without the key takes the signatures, too.
	if _, err := snapshot.Prune(t.Context(), repo.Folder, snapshot.PruneOptions{Policy: snapshot.Policy{Last: 1}, Now: time.Now}); err != nil {
		t.Fatal(err)
	}
	there := objectKeys(t, repo.Folder)
	if len(there) != 3 {
		t.Errorf("there is %q, want one backup with its signature", there)
	}
	// And so does a copy bring it.
	to := store.NewFolder(t.TempDir())
	if _, err := snapshot.CopyBackups(t.Context(), ours.Repository(repo.Folder), to, snapshot.CopyOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, _, err := snapshot.Choose(t.Context(), ours.Repository(to), snapshot.Choice{Name: "latest"}); err != nil {
		t.Errorf("the copy: %v", err)
	}
	// What a killed run left of one goes when it is old, and not before.
	lone := filepath.Join(repo.Path(""), strings.Replace(there[0], ".", ".verify-20260102T030405.000Z.", 1))
	lone = strings.TrimSuffix(lone, filepath.Ext(lone)) + ".json.minisig"
	put(t, lone, []byte("x"))
	for _, later := range []struct {
		by   time.Duration
		want int
	}{{0, 4}, {48 * time.Hour, 3}} {
		bent := &bentStore{Folder: repo.Folder, ahead: later.by}
		if _, err := snapshot.Clean(t.Context(), bent, snapshot.CleanOptions{Now: bent.now, Force: true}); err != nil {
			t.Fatal(err)
		}
		if got := objectKeys(t, repo.Folder); len(got) != later.want {
			t.Errorf("%s later there is %q", later.by, got)
		}
	}
}

// objectKeys lists the keys of a repository.
func objectKeys(t *testing.T, repo *store.Folder) (names []string) {
	t.Helper()
	objects, err := repo.List(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range objects {
		names = append(names, o.Key)
	}
	return names
}

func TestTheManifestBesideAFileIsSigned(t *testing.T) {
	t.Parallel()
	ours, member := signer(t), cluster(t, 1, 3)
	name := filepath.Join(t.TempDir(), "backup.db")
	for range 2 { // the second replaces the first
		if _, err := snapshot.SaveFile(t.Context(), source(member.Endpoints()...), name, snapshot.SaveOptions{Signing: ours}); err != nil {
			t.Fatal(err)
		}
	}
	// The oracle is the library's own verification, of the bytes on disk.
	if !minisign.Verify(ours.Trust[0], bytesOf(t, name+".json"), bytesOf(t, name+".json.minisig")) {
		t.Error("the signature is not minisign's")
	}
	verified := func() snapshot.Result {
		v, err := snapshot.VerifyFile(t.Context(), name, snapshot.VerifyOptions{Signing: ours, Now: time.Now, Scratch: t.TempDir()})
		if err != nil {
			t.Fatal(err)
		}
		return v.Result
	}
	if got := verified(); got != snapshot.ResultOK {
		t.Errorf("verified %s", got)
	}
	open := func() error {
		o, err := snapshot.OpenSource(t.Context(), name, snapshot.OpenOptions{Signing: ours})
		if err == nil {
			err = o.Close()
		}
		return err
	}
	if err := open(); err != nil {
		t.Error(err)
	}
	if _, err := snapshot.SaveFile(t.Context(), source(member.Endpoints()...), name, snapshot.SaveOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(name + ".json.minisig"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the signature of the manifest that was replaced is still there: %v", err)
	}
	for range 2 { // without a signature, then without a manifest
		if got, err := verified(), open(); got != snapshot.ResultBad || !errors.Is(err, snapshot.ErrUntrusted) {
			t.Errorf("verified %s, opened %v", got, err)
		}
		_ = os.Remove(name + ".json")
	}
}

func TestKeysAreReadInMinisignsFormat(t *testing.T) {
	t.Parallel()
	ours := signer(t)
	bare, err := ours.Key.MarshalText()
	if err != nil {
		t.Fatal(err)
	}
	public, err := ours.Trust[0].MarshalText()
	if err != nil {
		t.Fatal(err)
	}
	if key, err := snapshot.ParseSigningKey(bare, ""); err != nil || !key.Equal(*ours.Key) {
		t.Errorf("the secret key: %v", err)
	}
	for _, bad := range []string{"", "x", string(public), string(bare[:60])} {
		if _, err := snapshot.ParseSigningKey([]byte(bad), ""); err == nil || bad != "" && strings.Contains(err.Error(), bad) {
			t.Errorf("%q: %v", bad, err)
		}
	}
	for _, good := range []string{string(public), ours.Trust[0].String() + "\n", "# ours\n" + ours.Trust[0].String() + "\n\n" + ours.Trust[0].String()} {
		if keys, err := snapshot.ParseTrust([]byte(good)); err != nil || !keys[0].Equal(ours.Trust[0]) {
			t.Errorf("%q: %v", good, err)
		}
	}
	for _, bad := range []string{"", "RWx", "untrusted comment: nothing\n", string(bare)} {
		if _, err := snapshot.ParseTrust([]byte(bad)); err == nil || strings.Contains(err.Error(), "RWQAAEI") {
			t.Errorf("%q: %v", bad, err)
		}
	}
}
