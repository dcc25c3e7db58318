package snapshot_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/etcdkit/etcdkit/internal/store"
	"github.com/etcdkit/etcdkit/snapshot"
)

// rewrite changes a backup's manifest as somebody can who may write to the
// repository.
func rewrite(t *testing.T, repo *store.Folder, b *snapshot.Backup, change func(m *snapshot.Manifest)) *snapshot.Backup {
	t.Helper()
	m := b.Manifest
	change(&m)
	raw, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	put(t, repo.Path(b.ClusterID+"/"+b.Name+".json"), raw)
	return only(t, repo)
}

// A small object becomes a large one when it is decompressed: it is read no further
// than its manifest says.
func TestNothingIsDecompressedBeyondWhatItsManifestSays(t *testing.T) {
	t.Parallel()
	repo, b := saved(t, snapshot.SaveOptions{Codec: snapshot.Codec{Compression: "zstd"}})
	o, err := snapshot.OpenBackup(t.Context(), repo, "", b.Name, snapshot.OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	whole, err := io.ReadAll(o)
	if err := errors.Join(err, o.Close()); err != nil {
		t.Fatal(err)
	}
	var bomb bytes.Buffer
	w, err := zstd.NewWriter(&bomb)
	if err != nil {
		t.Fatal(err)
	}
	const beyond = 64 << 20
	for _, part := range [][]byte{whole, make([]byte, beyond)} {
		if _, err := w.Write(part); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	put(t, data(repo, b), bomb.Bytes())
	sum := sha256.Sum256(bomb.Bytes())
	b = rewrite(t, repo, b, func(m *snapshot.Manifest) {
		m.StoredBytes, m.StoredSHA256 = int64(bomb.Len()), hex.EncodeToString(sum[:])
	})
	if o, err = snapshot.OpenBackup(t.Context(), repo, "", b.Name, snapshot.OpenOptions{}); err != nil {
		t.Fatal(err)
	}
	n, err := io.Copy(io.Discard, o)
	if !errors.Is(err, snapshot.ErrIncomplete) || n > int64(len(whole)) || !strings.Contains(err.Error(), "larger than its manifest says") {
		t.Errorf("read %d bytes of %d, %v", n, len(whole), err)
	}
	if err := o.Close(); err != nil {
		t.Error(err)
	}
	v, err := snapshot.Verify(t.Context(), repo, b, snapshot.VerifyOptions{Now: time.Now, Scratch: t.TempDir()})
	if err != nil || v.Result != snapshot.ResultBad {
		t.Errorf("verified: %+v, %v", v, err)
	}
}

// The bytes are those of the manifest, and yet it is another cluster's: whoever may
// write to the repository wrote both.
func TestAManifestAgreesWithWhatIsInTheSnapshot(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(m *snapshot.Manifest){
		"another member":   func(m *snapshot.Manifest) { m.MemberID = "00000000000000ff" },
		"another revision": func(m *snapshot.Manifest) { m.Revision++ },
		"other keys":       func(m *snapshot.Manifest) { *m.Keys++ },
		"another hash":     func(m *snapshot.Manifest) { *m.HashKV++ },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			repo, b := saved(t, snapshot.SaveOptions{})
			file := data(repo, b)
			for _, changed := range []bool{false, true} {
				if changed {
					b = rewrite(t, repo, b, change)
				}
				v, err := snapshot.Verify(t.Context(), repo, b, snapshot.VerifyOptions{Now: time.Now, NoRecord: true, Scratch: t.TempDir()})
				if err != nil || v.OK == changed {
					t.Errorf("changed %v, verified: %+v, %v", changed, v, err)
				}
				raw, err := os.ReadFile(file)
				if err != nil {
					t.Fatal(err)
				}
				src := snapshot.RestoreSource{Name: file, Reader: bytes.NewReader(raw), At: bytes.NewReader(raw), Size: int64(len(raw))}
				opts := snapshot.RestoreOptions{
					DataDir: filepath.Join(t.TempDir(), "m1"), Name: "m1", Now: time.Now, Bump: snapshot.Bump{Auto: true},
					PeerURLs: []string{"http://127.0.0.1:2380"}, InitialCluster: "m1=http://127.0.0.1:2380",
					Accept: func(c snapshot.Copied) error { return b.Agrees(c.Report) },
				}
				if _, err := snapshot.Restore(t.Context(), src, opts); (err != nil) != changed || changed && !errors.Is(err, snapshot.ErrIncomplete) {
					t.Errorf("changed %v, restored: %v", changed, err)
				}
			}
		})
	}
}
