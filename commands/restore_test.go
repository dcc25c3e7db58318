package commands_test

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"filippo.io/age"
	"filippo.io/age/armor"
	bolt "go.etcd.io/bbolt"

	"github.com/etcdkit/etcdkit/commands"
	"github.com/etcdkit/etcdkit/internal/cli"
	"github.com/etcdkit/etcdkit/internal/embedded"
	"github.com/etcdkit/etcdkit/internal/testing/etcdtest"
	"github.com/etcdkit/etcdkit/internal/testing/s3test"
)

// kit runs etcdkit.
func kit(t *testing.T, args ...string) (code int, out, errs string) {
	t.Helper()
	env := cli.System()
	var stdout, stderr strings.Builder
	env.In, env.Out, env.Err, env.Live, env.OutTTY = strings.NewReader(""), &stdout, &stderr, false, false
	env.Environ = []string{"XDG_STATE_HOME=" + t.TempDir()}
	code = commands.Main(t.Context(), append([]string{"etcdkit"}, args...), env)
	return code, stdout.String(), stderr.String()
}

// Compressed, encrypted, armoured, in a bucket or a folder: what comes out is
// the keyspace that went in.
func TestBackupsAreRestored(t *testing.T) {
	c := etcdtest.Start(t, embedded.Options{})
	etcdtest.Fill(t, etcdtest.Client(t, c.Endpoints()...), "k/", 300, 500)
	identity, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	key, plain, armoured := filepath.Join(dir, "key.txt"), filepath.Join(dir, "plain.db"), filepath.Join(dir, "backup.asc")
	if err := os.WriteFile(key, []byte(identity.String()+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	server := s3test.Start(t, s3test.Options{})
	server.Setenv(t)
	bucket, folder := "s3://"+server.Bucket(t)+"/etcd/", filepath.Join(dir, "repo")+"/"
	s3 := []string{"--s3-endpoint", server.URL, "--s3-region", s3test.Region}
	encoded := []string{"--compress", "zstd", "--encrypt-to", identity.Recipient().String()}
	for _, target := range [][]string{{plain}, append([]string{folder}, encoded...), append(append([]string{bucket}, encoded...), s3...)} {
		args := append([]string{"--endpoints", c.Endpoints()[0], "snapshot", "save"}, target...)
		if code, _, errs := kit(t, args...); code != 0 {
			t.Fatalf("save to %s: exit code %d\n%s", target[0], code, errs)
		}
	}
	armourFile(t, plain, armoured, identity.Recipient())
	_, want, _ := kit(t, "hashkv", plain)
	withKey := []string{"--identity", key}
	for name, tc := range map[string]struct {
		args []string
		want string // of the error
	}{
		"the latest of a bucket":  {append(append([]string{bucket + "latest"}, withKey...), s3...), ""},
		"a bucket":                {append(append([]string{bucket}, withKey...), s3...), ""},
		"the latest of a folder":  {append([]string{folder + "latest"}, withKey...), ""},
		"an armoured file":        {append([]string{armoured}, withKey...), ""},
		"without the identity":    {append([]string{bucket + "latest"}, s3...), "hint: pass --identity FILE"},
		"armoured, without it":    {[]string{armoured}, "hint: pass --identity FILE"},
		"a bucket with no backup": {append(append([]string{"s3://" + server.Bucket(t) + "/none/latest"}, withKey...), s3...), "no such backup"},
	} {
		t.Run(name, func(t *testing.T) {
			target := filepath.Join(t.TempDir(), "d")
			code, _, errs := kit(t, append([]string{"snapshot", "restore", "--data-dir", target, "--bump-revision", "none"}, tc.args...)...)
			if tc.want != "" {
				if _, err := os.Stat(target); code != 1 || !strings.Contains(errs, tc.want) || !errors.Is(err, os.ErrNotExist) {
					t.Errorf("exit code %d, stat of the target %v; want 1, nothing left, and %q:\n%s", code, err, tc.want, errs)
				}
				return
			}
			if code != 0 {
				t.Fatalf("exit code %d\n%s", code, errs)
			}
			if _, got, _ := kit(t, "hashkv", target); got != want || got == "" {
				t.Errorf("hash %q, want that of the plain file, %q", got, want)
			}
		})
	}
}

// What a manifest says of a file beside it counts in a restore and its plan,
// also where the SHA-256 at the end is right, or not asked.
func TestARestoreHoldsAFileAgainstItsManifest(t *testing.T) {
	t.Parallel()
	c := etcdtest.Start(t, embedded.Options{})
	file := filepath.Join(t.TempDir(), "backup.db")
	if code, _, errs := kit(t, "--endpoints", c.Endpoints()[0], "snapshot", "save", file); code != 0 {
		t.Fatalf("save: exit code %d\n%s", code, errs)
	}
	restore := func(flags ...string) (code int, errs string) {
		code, _, errs = kit(t, append([]string{"snapshot", "restore", file, "--data-dir", filepath.Join(t.TempDir(), "d")}, flags...)...)
		return code, errs
	}
	variants := [][]string{nil, {"--plan"}, {"--skip-hash-check"}}
	for _, flags := range variants {
		if code, errs := restore(flags...); code != 0 {
			t.Errorf("%s: exit code %d\n%s", flags, code, errs)
		}
	}
	unused := freePage(t, file)
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	database := raw[:len(raw)-sha256.Size]
	database[unused+100] ^= 1
	sum := sha256.Sum256(database)
	if err := os.WriteFile(file, append(database, sum[:]...), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, flags := range variants {
		if code, errs := restore(flags...); code != 1 || !strings.Contains(errs, "it is not what its manifest describes") {
			t.Errorf("another file, %s: exit code %d\n%s", flags, code, errs)
		}
	}
}

// freePage returns where a page of a database begins that nothing uses.
func freePage(t *testing.T, file string) (offset int) {
	t.Helper()
	db, err := bolt.Open(file, 0o600, &bolt.Options{ReadOnly: true, PreLoadFreelist: true, Timeout: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	err = db.View(func(tx *bolt.Tx) error {
		for page := 2; ; page++ {
			switch info, err := tx.Page(page); {
			case err != nil:
				return err
			case info == nil:
				return errors.New("no page of the database is free")
			case info.Type == "free":
				offset = page * db.Info().PageSize
				return nil
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	return offset
}

// A repository's own settings decrypt it in every command.
func TestTheIdentityOfAConfiguredRepository(t *testing.T) {
	t.Parallel()
	c := etcdtest.Start(t, embedded.Options{})
	if _, err := etcdtest.Client(t, c.Endpoints()...).Put(t.Context(), "/registry/secrets/ns/s", "k8s\x00\n\x0c\n\x02v1\x12\x06Secret"); err != nil {
		t.Fatal(err)
	}
	identity, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	key, file, repo := filepath.Join(dir, "key.txt"), filepath.Join(dir, "config.yaml"), filepath.Join(dir, "repo")
	settings := "repositories:\n  main:\n    url: '" + repo + "/'\n    encryptTo: [" + identity.Recipient().String() + "]\n    identity: '" + key + "'\n"
	err = errors.Join(os.WriteFile(key, []byte(identity.String()+"\n"), 0o600), os.WriteFile(file, []byte(settings), 0o600))
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range []struct {
		args, want string
		code       int
	}{
		{"snapshot save @main", ".db.age", 0},
		{"snapshot verify @main", ": ok, verified to decoded", 0},
		{"snapshot verify @main --drill", ": ok, verified to restored", 0},
		{"secrets scan @main", "secrets", 3},
		{"snapshot restore @main --data-dir " + filepath.Join(dir, "d"), "restored ", 0},
	} {
		args := append([]string{"--config", file, "--endpoints", c.Endpoints()[0]}, strings.Fields(line.args)...)
		if code, out, errs := kit(t, args...); code != line.code || !strings.Contains(out, line.want) {
			t.Errorf("%s: exit code %d, want %d and %q\n%s%s", line.args, code, line.code, line.want, out, errs)
		}
	}
}

// armourFile encrypts a file as age -a does.
func armourFile(t *testing.T, from, to string, recipient age.Recipient) {
	t.Helper()
	b, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	var text bytes.Buffer
	a := armor.NewWriter(&text)
	w, err := age.Encrypt(a, recipient)
	if err != nil {
		t.Fatal(err)
	}
	_, err = io.Copy(w, bytes.NewReader(b))
	if err := errors.Join(err, w.Close(), a.Close()); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(to, text.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
}
