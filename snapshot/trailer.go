package snapshot

import (
	"crypto/sha256"
	"hash"

	"github.com/etcdkit/etcdkit/internal/mvccdb"
)

// trailed hashes a snapshot whose end is not known before it comes: the last
// bytes may be the SHA-256 of all before.
type trailed struct {
	hash hash.Hash // of all but tail
	tail []byte    // the last bytes so far, at most a trailer's length
	n    int64
}

func newTrailed() *trailed { return &trailed{hash: sha256.New(), tail: make([]byte, 0, 2*sha256.Size)} }

// add hashes what can no longer be the trailer.
func (t *trailed) add(b []byte) {
	t.n += int64(len(b))
	if len(b) >= sha256.Size {
		t.hash.Write(t.tail)
		t.hash.Write(b[:len(b)-sha256.Size])
		t.tail = append(t.tail[:0], b[len(b)-sha256.Size:]...)
		return
	}
	t.tail = append(t.tail, b...)
	if over := len(t.tail) - sha256.Size; over > 0 {
		t.hash.Write(t.tail[:over])
		t.tail = append(t.tail[:0], t.tail[over:]...)
	}
}

// finish tells the trailer from the database: with it, the size is what etcd
// makes snapshots of, and the SHA-256 more. Without, there is no trailer.
func (t *trailed) finish() (database [sha256.Size]byte, trailer []byte, whole [sha256.Size]byte) {
	if mvccdb.HasTrailer(t.n) {
		trailer = append(trailer, t.tail...)
		database = [sha256.Size]byte(t.hash.Sum(nil))
	}
	t.hash.Write(t.tail)
	t.tail = t.tail[:0]
	whole = [sha256.Size]byte(t.hash.Sum(nil))
	if trailer == nil {
		database = whole
	}
	return database, trailer, whole
}
