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
	w := newWindow(end, from, from)
	at := func(key []byte) int { i, _ := slices.BinarySearchFunc(keys, key, bytes.Compare); return i }
	for {
		to := w.next(from)
		inside := keys[at(from):]
		if !bytes.Equal(to, []byte{0}) {
			inside = keys[at(from):at(to)]
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
	for name, tc := range map[string]struct {
		kinds          []string
		pages, counted int // at the most, for 40,000 keys by 500
	}{
		"one kind":   {[]string{"pods"}, 200, 4},
		"many kinds": {[]string{"configmaps", "deployments", "endpointslices", "events", "leases", "pods", "replicasets", "secrets"}, 450, 6},
		"deep below": {[]string{"a/long/path/that/all/have", "a/long/path/that/few/have", "b"}, 250, 6},
	} {
		t.Run(name, func(t *testing.T) {
			var keys [][]byte
			for i := range 40_000 {
				keys = append(keys, fmt.Appendf(nil, "/registry/%s/ns-%d/p-%d", tc.kinds[i%len(tc.kinds)], i%97, i))
			}
			slices.SortFunc(keys, bytes.Compare)
			got, pages, counted := walk(keys, keys[0], []byte("/registry0"), 500)
			if !slices.EqualFunc(got, keys, bytes.Equal) {
				t.Errorf("%d keys read, want %d", len(got), len(keys))
			}
			if pages > tc.pages || counted > tc.counted*len(keys) {
				t.Errorf("%d pages, %.1f times the keys counted", pages, float64(counted)/float64(len(keys)))
			}
		})
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
