package mvccdb_test

import (
	"bytes"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/etcdkit/etcdkit/internal/mvccdb"
)

// stream examines bytes as they would come from etcd, in odd pieces.
func stream(t testing.TB, b []byte, piece int) *mvccdb.Streamed {
	t.Helper()
	x := mvccdb.NewExaminer()
	for rest := b; len(rest) > 0; {
		n := min(piece, len(rest))
		if _, err := x.Write(rest[:n]); err != nil {
			t.Fatal(err)
		}
		rest = rest[n:]
	}
	s, err := x.Finish(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// An examination of a stream says the same as a check of the file.
func TestAStreamIsExaminedLikeAFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "db")
	s := openStore(t, path)
	s.churn(t, rand.New(rand.NewPCG(9, 9)), 400, 6000, 120, 300) // values of several pages, and free ones
	s.close()
	churned, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for name, good := range map[string][]byte{"Kubernetes": kubernetes(t), "pages that overflow": churned} {
		t.Run(name, func(t *testing.T) {
			want, err := checkBytes(t, good)
			if err != nil || !want.Good() {
				t.Fatal(want.Damage, err)
			}
			for _, piece := range []int{1, 777, 32 << 10, len(good)} {
				got := stream(t, good, piece)
				if got.Unexamined != "" || got.DamageCount > 0 {
					t.Fatalf("%q, damage %v in a good file", got.Unexamined, got.Damage)
				}
				if got.Revision != want.Revision || got.Revisions != want.Revisions || got.Tombstones != want.Tombstones ||
					got.State.ConsistentIndex != want.State.ConsistentIndex || len(got.State.Members) != len(want.State.Members) {
					t.Errorf("pieces of %d: revision %d, %d revisions, %d deletions; the file says %d, %d, %d",
						piece, got.Revision, got.Revisions, got.Tombstones, want.Revision, want.Revisions, want.Tombstones)
				}
			}
			r := rand.New(rand.NewPCG(4, 4))
			for range 150 {
				bad := bytes.Clone(good)
				at := r.IntN(len(bad))
				for bad[at] == 0 && r.IntN(8) > 0 {
					at = r.IntN(len(bad))
				}
				bad[at] ^= 1 << r.IntN(8)
				report, err := checkBytes(t, bad)
				// What needs the order of a key's versions, or the trailer, no stream tells.
				alone := err != nil || report.DamageCount > 1 || report.DamageCount == 1 && !lineOnly(report.Damage[0])
				got := stream(t, bad, 32<<10)
				if found := got.Unexamined != "" || got.DamageCount > 0; found != alone {
					t.Errorf("byte %d: found %t (%q, %v) in the stream, %t in the file (%v, %v)", at, found, got.Unexamined, got.Damage, alone, report, err)
				}
			}
		})
	}
}

func lineOnly(d *mvccdb.Damage) bool {
	for _, end := range []string{"of its key", "does not exist"} {
		if bytes.HasSuffix([]byte(d.What), []byte(end)) {
			return true
		}
	}
	return false
}

func TestATruncatedStreamIsDamaged(t *testing.T) {
	good := kubernetes(t)
	for _, n := range []int{0, 10, 80, 4096, 3 * 4096, len(good) / 2, len(good)/4096*4096 - 4096} {
		if got := stream(t, good[:n], 4096); got.Unexamined == "" && got.DamageCount == 0 {
			t.Errorf("%d bytes of %d pass", n, len(good))
		}
	}
}

func BenchmarkExaminer(b *testing.B) {
	good := kubernetes(b)
	b.SetBytes(int64(len(good)))
	for b.Loop() {
		stream(b, good, 32<<10)
	}
}
