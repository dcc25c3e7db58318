package etcd

import "bytes"

// window bounds the next page. A page costs the server a count of all keys in
// the range asked for, so the end of the whole range is a bad one when much is
// left. A window ends where the key at which it begins changes in one byte, and
// which byte that is follows from how many keys the last windows held.
type window struct {
	end   []byte // of the whole range, "\x00" for none
	depth int    // the byte that changes
	step  int    // by which depth grows next
}

// next returns the end of the page that begins at from.
func (w *window) next(from []byte) []byte {
	w.depth = min(w.depth, len(from)-1)
	for w.depth >= 0 && from[w.depth] == 0xff {
		w.depth--
	}
	if w.depth < 0 {
		w.depth = 0
		return w.end
	}
	end := bytes.Clone(from[:w.depth+1])
	end[w.depth]++
	if !bytes.Equal(w.end, []byte{0}) && bytes.Compare(end, w.end) >= 0 {
		return w.end
	}
	return end
}

// held learns from a window that held count keys, when a page takes limit.
func (w *window) held(count, limit int64) {
	switch {
	case count > 4*limit: // closer
		w.depth += w.step
		w.step = min(2*w.step, 16)
	case count < limit/2: // wider
		w.depth = max(w.depth-1, 0)
		w.step = 1
	default:
		w.step = 1
	}
}
