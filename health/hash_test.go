package health

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
)

func TestCompareHashes(t *testing.T) {
	type member struct {
		states []HashState // read in turn, the last one again and again
		hash   func(revision int64) uint32
	}
	same := func(int64) uint32 { return 7 }
	other := func(int64) uint32 { return 8 }
	at := func(revision int64, applied uint64) HashState { return HashState{Revision: revision, Applied: applied} }
	for name, tc := range map[string]struct {
		members []member
		want    HashResult
	}{
		"the same at rest":         {[]member{{[]HashState{at(9, 20)}, same}, {[]HashState{at(9, 20)}, same}}, HashesEqual},
		"other data at rest":       {[]member{{[]HashState{at(9, 20)}, same}, {[]HashState{at(9, 20)}, other}}, HashesDiffer},
		"one ahead, both applied":  {[]member{{[]HashState{at(9, 20)}, same}, {[]HashState{at(10, 20)}, same}}, HashesDiffer},
		"one behind for good":      {[]member{{[]HashState{at(9, 20)}, same}, {[]HashState{at(10, 21)}, same}}, HashesUnknown},
		"one behind for a moment":  {[]member{{[]HashState{at(9, 20), at(9, 20), at(9, 20), at(10, 21)}, same}, {[]HashState{at(10, 21)}, same}}, HashesEqual},
		"readings that do not fit": {[]member{{[]HashState{at(9, 20), at(9, 20), at(10, 20)}, same}, {[]HashState{at(10, 20)}, same}}, HashesEqual},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var sources []HashSource
				for i, m := range tc.members {
					reading := 0
					sources = append(sources, HashSource{
						Member: fmt.Sprint("m", i),
						State: func(context.Context) (HashState, error) {
							reading++
							return m.states[min(reading, len(m.states))-1], nil
						},
						Hash: func(_ context.Context, revision int64) (MemberHash, error) {
							return MemberHash{Hash: m.hash(revision)}, nil
						},
					})
				}
				if got := CompareHashes(t.Context(), sources); got.Result != tc.want {
					t.Errorf("%+v, want %s", got, tc.want)
				}
			})
		})
	}
}

// A hash blocks writes on its member: never two at once, and the leader last.
func TestHashesAreTakenOneAfterTheOther(t *testing.T) {
	var order []string
	busy := false
	source := func(name string, leads bool) HashSource {
		return HashSource{
			Member: name,
			State:  func(context.Context) (HashState, error) { return HashState{Revision: 5, Applied: 5, Leads: leads}, nil },
			Hash: func(context.Context, int64) (MemberHash, error) {
				if busy {
					t.Error("two members hash at once")
				}
				busy = true
				order = append(order, name)
				busy = false
				return MemberHash{Hash: 1}, nil
			},
		}
	}
	CompareHashes(t.Context(), []HashSource{source("a", false), source("b", true), source("c", false)})
	if got := strings.Join(order, " "); got != "a c b" {
		t.Errorf("hashed in the order %s, want a c b", got)
	}
}
