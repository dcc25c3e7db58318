package health

import (
	"errors"
	"testing"
)

func TestResolve(t *testing.T) {
	members := []Member{
		{ID: 0xa1, IDHex: "00000000000000a1", Name: "a", PeerURLs: []string{"https://a:2380"}, ClientURLs: []string{"https://a:2379", "https://all:2379"}},
		{ID: 0xb2, IDHex: "00000000000000b2", Name: "twin", PeerURLs: []string{"https://b:2380"}, ClientURLs: []string{"https://all:2379"}},
		{ID: 0xc3, IDHex: "00000000000000c3", Name: "twin", PeerURLs: []string{"https://c:2380"}},
		{ID: 0xd4, IDHex: "00000000000000d4", Name: "00000000000000b2"},
	}
	for arg, want := range map[string]struct {
		id  uint64
		err error
	}{
		"a":                {id: 0xa1}, // not 0xa: no member has that
		"A1":               {id: 0xa1},
		"0xa1":             {id: 0xa1},
		"00000000000000a1": {id: 0xa1},
		"00000000000000b2": {id: 0xb2}, // the id of one wins over the name of another
		"https://b:2380/":  {id: 0xb2},
		"b:2380":           {id: 0xb2},
		"https://a:2379":   {id: 0xa1},
		"twin":             {err: ErrAmbiguous},
		"all:2379":         {err: ErrAmbiguous},
		"nobody":           {err: ErrNoMember},
		"":                 {err: ErrNoMember},
	} {
		got, err := Resolve(members, arg)
		if got.ID != want.id || !errors.Is(err, want.err) || (err == nil) != (want.err == nil) {
			t.Errorf("%q: %x, %v; want %x, %v", arg, got.ID, err, want.id, want.err)
		}
	}
}
