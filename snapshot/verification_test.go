package snapshot

import (
	"strings"
	"testing"
	"time"
)

// records draws verifications in the order of time: ok:LEVEL reached that
// level, bad:LEVEL failed there.
func records(t *testing.T, drawing string) []*Verification {
	t.Helper()
	before := map[Level]Level{LevelStored: "", LevelDecoded: LevelStored, LevelRestored: LevelDecoded}
	var all []*Verification
	for word := range strings.FieldsSeq(drawing) {
		result, level, _ := strings.Cut(word, ":")
		v := &Verification{Name: word, Result: Result(result), Level: Level(level), At: time.Unix(int64(len(all)), 0)}
		if v.Result == ResultBad {
			v.Level = before[v.Level]
		}
		v.OK = v.Result == ResultOK
		all = append(all, v)
	}
	return all
}

func TestTheVerificationThatCounts(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ records, want string }{
		"none":                                     {"", ""},
		"one":                                      {"ok:decoded", "ok:decoded"},
		"unknown says nothing":                     {"unknown:stored", ""},
		"a shallower good one hides no proof":      {"ok:decoded ok:stored", "ok:decoded"},
		"the deepest good one":                     {"ok:decoded ok:restored ok:decoded ok:stored", "ok:restored"},
		"damage after a proof":                     {"ok:restored bad:stored", "bad:stored"},
		"a shallower good one hides no damage":     {"bad:decoded ok:stored ok:stored", "bad:decoded"},
		"nor damage that only a drill found":       {"ok:decoded bad:restored ok:decoded", "bad:restored"},
		"an unknown one hides no damage":           {"bad:stored unknown:stored", "bad:stored"},
		"as deep a good one refutes damage":        {"bad:decoded ok:decoded", "ok:decoded"},
		"a deeper one too":                         {"bad:stored ok:restored", "ok:restored"},
		"one before it does not":                   {"ok:restored bad:decoded ok:stored", "bad:decoded"},
		"refuted, the older proof counts again":    {"ok:restored bad:stored ok:stored", "ok:restored"},
		"a shallower fault hides no deeper one":    {"bad:restored bad:stored ok:stored", "bad:restored"},
		"of two faults the deeper must be refuted": {"bad:stored bad:restored ok:decoded", "bad:restored"},
	} {
		t.Run(name, func(t *testing.T) {
			got, all := "", records(t, tc.records)
			for range 2 { // in whatever order they were read
				if v := standing(all); v != nil {
					got = v.Name
				}
				if got != tc.want {
					t.Errorf("got %q, want %q", got, tc.want)
				}
				for i, j := 0, len(all)-1; i < j; i, j = i+1, j-1 {
					all[i], all[j] = all[j], all[i]
				}
			}
		})
	}
}

func TestAtTheSameMomentDamageCounts(t *testing.T) {
	t.Parallel()
	all := records(t, "bad:stored ok:restored")
	all[1].At = all[0].At
	if v := standing(all); v.Result != ResultBad {
		t.Errorf("got %s, want the damage", v.Name)
	}
}
