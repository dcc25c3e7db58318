package snapshot_test

import (
	"bytes"
	"crypto/sha256"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/etcdkit/etcdkit/snapshot"
)

func verifyBytes(t *testing.T, b []byte, level snapshot.Level) *snapshot.Verification {
	t.Helper()
	path := filepath.Join(t.TempDir(), "backup.db")
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	v, err := snapshot.VerifyFile(t.Context(), path, snapshot.VerifyOptions{Level: level, Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// internal/mvccdb has the table of flips that the SHA-256 does not give away.
func TestVerifyCatchesEveryBitFlip(t *testing.T) {
	t.Parallel()
	const flips = 1000
	good := kubernetes(t)
	r := rand.New(rand.NewPCG(3, 3))
	path := filepath.Join(t.TempDir(), "backup.db")
	for range flips {
		bit := r.IntN(len(good) * 8)
		bad := bytes.Clone(good)
		bad[bit/8] ^= 1 << (bit % 8)
		if err := os.WriteFile(path, bad, 0o600); err != nil {
			t.Fatal(err)
		}
		v, err := snapshot.VerifyFile(t.Context(), path, snapshot.VerifyOptions{Now: time.Now})
		if err != nil || v.Result != snapshot.ResultBad {
			t.Errorf("bit %d of byte %d: %+v, %v; want it bad", bit%8, bit/8, v, err)
		}
	}
}

// etcd-io/etcd#21283: a verification goes through hash, structure, every
// revision, and a restore that is booted.
func TestVerifyHashesDecodesAndRestores(t *testing.T) {
	t.Parallel()
	good := kubernetes(t)
	seal := func(b []byte) []byte {
		sum := sha256.Sum256(b[:len(b)-sha256.Size])
		return append(b[:len(b)-sha256.Size], sum[:]...)
	}
	const leaf, header = 40 * 4096, 16
	malformed := bytes.Clone(good)
	malformed[leaf+header+4]++ // where the first element says that its key is
	for name, tc := range map[string]struct {
		bytes []byte
		level snapshot.Level
		want  snapshot.Result
		says  string
	}{
		"a whole one, down to the drill":        {good, snapshot.LevelRestored, snapshot.ResultOK, ""},
		"another hash":                          {flip(good, 120_000), "", snapshot.ResultBad, "SHA-256"},
		"a broken structure under a right hash": {seal(malformed), "", snapshot.ResultBad, "page 40"},
		"a zeroed page under a right hash":      {seal(zeroPage(good)), "", snapshot.ResultBad, "page 40"},
		"a revision that cannot be decoded":     {seal(undecodable(good)), "", snapshot.ResultBad, "cannot be decoded"},
	} {
		t.Run(name, func(t *testing.T) {
			v := verifyBytes(t, tc.bytes, tc.level)
			var said []string
			for _, c := range v.Checks {
				said = append(said, c.Detail)
			}
			if v.Result != tc.want || !strings.Contains(strings.Join(said, "\n"), tc.says) {
				t.Errorf("%s, checks %+v; want %s and %q", v.Result, v.Checks, tc.want, tc.says)
			}
		})
	}
}

// undecodable breaks the first value after a revision key that it finds.
func undecodable(b []byte) []byte {
	b = bytes.Clone(b)
	key := []byte("\x00\x00\x00\x00\x00\x00\x00\x64_\x00\x00\x00\x00\x00\x00\x00\x00") // revision 100
	for at := 0; ; {
		i := bytes.Index(b[at:], key)
		if i < 0 {
			return b
		}
		at += i + len(key)
		if b[at] == 0x0a { // the value's first field, the key
			copy(b[at:], "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff")
		}
	}
}
