package etcd

import "bytes"

// siblings is how many windows without a key are tried before a wider one is
// that held too much elsewhere.
const siblings = 3

// window bounds the next page. A page costs the server a count of all keys in
// the range asked for, so the end of the whole range is a bad one when much is
// left. A window ends where the key at which it begins changes in one byte, and
// which byte that is follows from how many keys the last windows held.
type window struct {
	end   []byte  // of the whole range, "\x00" for none
	depth int     // the byte that changes
	step  int     // by which depth grows next
	empty int     // windows without a key, one after the other
	most  []int64 // keys that a window was seen to hold, by depth
}

// newWindow returns windows over a range of which the first keys are known.
// Those that share what the first keys share are not all, so they are a narrow
// window: to widen it costs little, to count too much does.
func newWindow(end, first, last []byte) *window {
	n := 0
	for n < min(len(first), len(last)) && first[n] == last[n] {
		n++
	}
	return &window{end: end, depth: max(n-1, 0), step: 1}
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
	w.note(count)
	if w.empty++; count > 0 {
		w.empty = 0
	}
	switch {
	case w.empty == siblings && w.depth > 0: // here it is another country
		w.empty = 0
		w.depth--
	case count > 4*limit: // closer
		w.depth += w.step
		w.step = min(2*w.step, 16)
		return
	case count < limit/4 && w.depth > 0 && w.seen(w.depth-1) <= 4*limit: // wider
		w.depth--
	}
	w.step = 1
}

func (w *window) note(count int64) {
	for len(w.most) <= w.depth {
		w.most = append(w.most, 0)
	}
	w.most[w.depth] = max(w.most[w.depth], count)
}

// seen is the most that a window of a depth held.
func (w *window) seen(depth int) int64 {
	if depth >= len(w.most) {
		return 0
	}
	return w.most[depth]
}
