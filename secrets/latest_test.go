package secrets

import (
	"fmt"
	"runtime"
	"testing"
)

func heap() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC() // what the first one only swept
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// A cluster that encrypts nothing, scanned for everything, has a finding for
// each object. Neither their number nor that of the keys may fill the memory.
func TestMemoryOfAScanIsAFewBytesForEachKey(t *testing.T) {
	const keys, perKey = 1_000_000, 36 // a table that doubles is half full at times
	before := heap()
	tally := newTally(newScope([]string{"/registry"}, Options{}), Options{MostNamed: 100})
	l := newLatest(tally, true)
	j := newJudge(Options{}, tally.scope)
	plain := class{Resource: "secrets", State: Plain}
	for i := range keys {
		key := fmt.Appendf(nil, "/registry/secrets/a-namespace-with-a-long-name/object-%08d", i)
		l.add(l.keys.ID(key), j.version(plain, key, stamp{mod: int64(i)}))
	}
	if used := heap() - before; used > keys*perKey {
		t.Errorf("%d keys take %d bytes each, want %d at most", keys, used/keys, perKey)
	}
	l.live()
	tally.finish(nil)
	r := tally.report
	if len(r.Findings) != 100 || r.NotNamed != keys-100 || len(r.Summary) != 1 || r.Summary[0].Count != keys {
		t.Errorf("%d named, %d not, counts %v", len(r.Findings), r.NotNamed, r.Summary)
	}
}

// Whatever order versions come in, the counts are exact, and what is named is
// what is there.
func TestLatestFollowsEachKey(t *testing.T) {
	plain, sealed := class{Resource: "secrets", State: Plain}, class{Resource: "secrets", State: Encrypted, Provider: "aescbc", Key: "k"}
	broken := sealed
	broken.open = openResult{asked: true, reason: "no key opens it"}
	for name, tc := range map[string]struct {
		versions []*class // of one key, nil for a deletion
		want     string
	}{
		"written once":               {[]*class{&plain}, "live plain 1; named live"},
		"rewritten":                  {[]*class{&plain, &sealed}, "live encrypted 1, history plain 1; named history"},
		"rewritten in clear":         {[]*class{&sealed, &plain}, "live plain 1, history encrypted 1; named live"},
		"deleted":                    {[]*class{&plain, nil}, "history plain 1; named history"},
		"deleted and made anew":      {[]*class{&plain, nil, &plain}, "live plain 1, history plain 1; named live history"},
		"a deletion alone":           {[]*class{nil}, "; named"},
		"one that does not open":     {[]*class{&broken, &sealed}, "live encrypted 1, history encrypted 1; named, closed history"},
		"two that differ by opening": {[]*class{&sealed, &broken, &sealed}, "live encrypted 1, history encrypted 2; named, closed history"},
	} {
		t.Run(name, func(t *testing.T) {
			tally := newTally(newScope([]string{"/registry"}, Options{}), Options{})
			l, j := newLatest(tally, true), newJudge(Options{}, tally.scope)
			for i, c := range tc.versions {
				var v version
				if c != nil {
					v = j.version(*c, []byte("/registry/secrets/ns/a"), stamp{mod: int64(i + 1)})
				}
				l.add(l.keys.ID([]byte("/registry/secrets/ns/a")), v)
			}
			l.live()
			tally.finish(nil)
			if got := brief(tally.report); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func brief(r *Report) string {
	text := ""
	for i, c := range r.Summary {
		if i > 0 {
			text += ", "
		}
		text += fmt.Sprintf("%s %s %d", c.Place, c.State, c.Count)
	}
	text += "; named"
	for _, f := range r.Findings {
		text += " " + string(f.Place)
	}
	for _, u := range r.Unopened {
		text += ", closed " + string(u.Place)
	}
	return text
}
