package etcd

import (
	"bytes"
	"fmt"
	"slices"
	"testing"
)

// walk reads keys through windows, limit at a time, and returns what it has
// read, how many pages that took, and how many keys were counted for it.
func walk(keys [][]byte, from, end []byte, limit int) (got [][]byte, pages, counted int) {
	w := &window{end: end, step: 1}
	for {
		to := w.next(from)
		var inside [][]byte
		for _, k := range keys {
			if bytes.Compare(k, from) >= 0 && (bytes.Equal(to, []byte{0}) || bytes.Compare(k, to) < 0) {
				inside = append(inside, k)
			}
		}
		page := inside[:min(limit, len(inside))]
		got, pages, counted = append(got, page...), pages+1, counted+len(inside)
		switch {
		case len(page) < len(inside):
			from = append(bytes.Clone(page[len(page)-1]), 0)
		case bytes.Equal(to, end):
			return got, pages, counted
		default:
			from = to
		}
		w.held(int64(len(inside)), int64(limit))
	}
}

func TestWindowsCountFewKeys(t *testing.T) {
	var keys [][]byte
	for i := range 40_000 {
		keys = append(keys, fmt.Appendf(nil, "/registry/pods/ns-%d/p-%d", i%97, i))
	}
	slices.SortFunc(keys, bytes.Compare)
	got, pages, counted := walk(keys, []byte("/registry/"), []byte("/registry0"), 500)
	if !slices.EqualFunc(got, keys, bytes.Equal) {
		t.Errorf("%d keys read, want %d", len(got), len(keys))
	}
	if pages > 400 || counted > 20*len(keys) {
		t.Errorf("%d pages, %d keys counted", pages, counted)
	}
}

// FuzzWindow shows that windows leave nothing out, show nothing twice and come
// to an end, whatever the keys are.
func FuzzWindow(f *testing.F) {
	f.Add([]byte("a\xff\xff/b/\x00/b\xffc/\xff"), []byte("a"), 2)
	f.Add([]byte("x/xy/xyz"), []byte(""), 1)
	f.Fuzz(func(t *testing.T, text, from []byte, limit int) {
		if len(text) > 200 || len(from) > 20 {
			t.Skip()
		}
		var keys, want [][]byte
		for part := range bytes.SplitSeq(text, []byte("/")) {
			if len(part) > 0 && !slices.ContainsFunc(keys, func(k []byte) bool { return bytes.Equal(k, part) }) {
				keys = append(keys, part)
			}
		}
		slices.SortFunc(keys, bytes.Compare)
		for _, k := range keys {
			if bytes.Compare(k, from) >= 0 {
				want = append(want, k)
			}
		}
		if len(from) == 0 {
			from = []byte{0}
		}
		got, _, _ := walk(keys, from, []byte{0}, 1+limit&7)
		if !slices.EqualFunc(got, want, bytes.Equal) {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}
