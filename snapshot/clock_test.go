package snapshot

import (
	"errors"
	"strings"
	"testing"
	"time"
)

func TestASilenceOfManyIntervalsIsSuspicious(t *testing.T) {
	now := time.Date(2026, 3, 15, 12, 0, 0, 0, time.UTC)
	for name, tc := range map[string]struct {
		ages    string // oldest first
		refused bool
	}{
		"none":                                  {"", false},
		"nightly":                               {"72h 48h 24h", false},
		"nightly, after a long weekend":         {"144h 120h 96h", false},
		"nightly, silent for half a month":      {"408h 384h 360h", true},
		"seconds apart, a year ago":             {"8760h0m4s 8760h0m2s 8760h", true},
		"hourly, silent over a night":           {"14h 13h 12h", false},
		"hourly, silent for three days":         {"74h 73h 72h", true},
		"one alone, a month old":                {"730h", false},
		"one alone, a year old":                 {"8760h", true},
		"two, monthly":                          {"1460h 730h", false},
		"a stamp in the future proves nothing":  {"8760h2s 8760h1s 8760h -48h", true},
		"the usual interval is not the longest": {"9000h 3h 2h 1h", false},
	} {
		t.Run(name, func(t *testing.T) {
			var times []time.Time
			for word := range strings.FieldsSeq(tc.ages) {
				age, err := time.ParseDuration(word)
				if err != nil {
					t.Fatal(err)
				}
				times = append(times, now.Add(-age))
			}
			if err := checkSilence(times, now, shortSilence); errors.Is(err, ErrUnsureTime) != tc.refused {
				t.Errorf("got %v, want it refused: %t", err, tc.refused)
			}
		})
	}
}
