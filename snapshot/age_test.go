package snapshot

import (
	"errors"
	"strings"
	"testing"
	"time"
)

func TestTheAgeOfBackups(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 15, 12, 0, 0, 0, time.UTC)
	const day = 24 * time.Hour
	for name, tc := range map[string]struct {
		all                  string // ages, + for proven, oldest first
		limit, verifiedLimit time.Duration
		newest, verified     string
		err                  error
		notes                int
	}{
		"young enough":                       {"50h 1h", day, 0, "1h", "", nil, 0},
		"too old":                            {"50h 30h", day, 0, "30h", "", ErrTooOld, 0},
		"none":                               {"", day, 0, "", "", ErrTooOld, 0},
		"none, and no limit":                 {"", 0, 0, "", "", nil, 0},
		"proven":                             {"50h+ 1h", day, 3 * day, "1h", "50h+", nil, 0},
		"proven too long ago":                {"50h+ 1h", day, day, "1h", "50h+", ErrTooOld, 0},
		"never proven":                       {"1h", day, day, "1h", "", ErrTooOld, 0},
		"a clock a little ahead is no fault": {"-2m", day, 0, "-2m", "", nil, 0},
		"a stamp in the future beside a young one":   {"1h -48h", day, 0, "1h", "", nil, 1},
		"a stamp in the future beside an old one":    {"50h -48h", day, 0, "50h", "", ErrClock, 1},
		"a stamp in the future alone":                {"-48h", day, 0, "-48h", "", ErrClock, 1},
		"a proven one from the future":               {"1h -48h+", day, day, "1h", "-48h+", ErrClock, 1},
		"too old a proof beats a clock":              {"50h+ -48h", day, day, "50h+", "50h+", ErrTooOld, 1},
		"a stamp in the future, and any age will do": {"-48h", 0, 0, "-48h", "", nil, 1},
	} {
		t.Run(name, func(t *testing.T) {
			var all []*Backup
			for word := range strings.FieldsSeq(tc.all) {
				age, proven := strings.CutSuffix(word, "+")
				d, err := time.ParseDuration(age)
				if err != nil {
					t.Fatal(err)
				}
				b := &Backup{Manifest: Manifest{Name: word, CreatedAt: now.Add(-d), Quorum: true}}
				if proven {
					b.Verified = &Verification{Result: ResultOK, OK: true, Level: LevelDecoded}
				}
				all = append(all, b)
			}
			good, proven := stamps(all, "", nil)
			f := &Freshness{}
			err := f.judge(judgeAge("good backup", good, tc.limit, now), judgeAge("verified backup", proven, tc.verifiedLimit, now))
			if !errors.Is(err, tc.err) || f.OK != (tc.err == nil) || f.Newest != tc.newest || f.Verified != tc.verified || len(f.Notes) != tc.notes {
				t.Errorf("got %+v, %v", f, err)
			}
		})
	}
}

// A run that found nothing changed counts for its backup, if its clock is right.
func TestTheRecordOfARunCountsByItsOwnClock(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 15, 12, 0, 0, 0, time.UTC)
	all := []*Backup{{Manifest: Manifest{Name: "b", CreatedAt: now.Add(-50 * time.Hour), Quorum: true}}}
	for ago, want := range map[time.Duration]error{time.Hour: nil, 30 * time.Hour: ErrTooOld, -30 * time.Hour: ErrClock} {
		good, _ := stamps(all, "", &Seen{Backup: "b", At: now.Add(-ago)})
		if j := judgeAge("good backup", good, 24*time.Hour, now); !errors.Is(j.err, want) {
			t.Errorf("seen %s ago: %v, want %v", ago, j.err, want)
		}
	}
}
