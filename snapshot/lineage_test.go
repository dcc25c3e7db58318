package snapshot

import (
	"testing"
	"time"
)

// Two clusters with the same peer URLs and token have the same id, so the
// revision tells: one that went back is another history.
func TestLineageIsCarriedOnUntilTheRevisionGoesBack(t *testing.T) {
	t.Parallel()
	old := func(before, after int64, quorum bool) []*Backup {
		return []*Backup{{Manifest: Manifest{
			Schema: 1, Name: "old", ClusterID: "c", Lineage: "old", Quorum: quorum, CreatedAt: time.Unix(1, 0),
			RevisionBefore: before, RevisionAfter: after,
		}}}
	}
	for name, tc := range map[string]struct {
		all           []*Backup
		before, after int64
		quorum        bool
		carried, warn bool
		none          bool
	}{
		"the first":                        {nil, 5, 5, true, false, false, false},
		"the first, without quorum":        {nil, 5, 5, false, false, false, true},
		"further on":                       {old(5, 5, true), 9, 9, true, true, false, false},
		"the same":                         {old(5, 5, true), 5, 5, true, true, false, false},
		"overlapping streams":              {old(5, 9, true), 4, 6, true, true, false, false},
		"gone back":                        {old(5, 9, true), 4, 4, true, false, true, false},
		"gone back without quorum":         {old(5, 9, true), 4, 4, false, true, false, false},
		"only one without quorum is older": {old(5, 9, false), 4, 4, true, false, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := &Saved{Manifest: &Manifest{RevisionBefore: tc.before, RevisionAfter: tc.after, Quorum: tc.quorum}}
			s.continueLineage(tc.all)
			got := s.Manifest.Lineage
			if (got == "old") != tc.carried || (len(s.Warnings) > 0) != tc.warn || (got == "") != tc.none {
				t.Errorf("lineage %q, warnings %q", got, s.Warnings)
			}
		})
	}
}

// A save to a folder knows the revision of its file. That may be older than what
// a faster run has stored meanwhile, and is no new history for that.
func TestASlowSaveBesideAFastOneStaysInTheLineage(t *testing.T) {
	t.Parallel()
	fast := &Backup{Manifest: Manifest{
		Schema: 1, Name: "fast", ClusterID: "c", Lineage: "l", Quorum: true, CreatedAt: time.Unix(2, 0), Revision: 20, RevisionBefore: 20, RevisionAfter: 22,
	}}
	for after, want := range map[int64]bool{20: true, 25: true, 19: false} {
		s := &Saved{Manifest: &Manifest{ClusterID: "c", Quorum: true, Revision: 10, RevisionBefore: 9, RevisionAfter: after}}
		s.continueLineage([]*Backup{fast})
		if got := s.Manifest.Lineage == "l" && len(s.Warnings) == 0; got != want {
			t.Errorf("cluster at %d by the end: same lineage %t, %q; want %t", after, got, s.Warnings, want)
		}
	}
}

func TestASaveTellsOfAWrongClock(t *testing.T) {
	t.Parallel()
	now := time.Unix(1000, 0)
	for ahead, want := range map[time.Duration]int{-time.Hour: 0, time.Minute: 0, time.Hour: 1} {
		s := &Saved{}
		s.warnOfClocks([]*Backup{{Manifest: Manifest{Name: "b", CreatedAt: now.Add(ahead)}}}, now)
		if len(s.Warnings) != want {
			t.Errorf("%s ahead: %q, want %d warnings", ahead, s.Warnings, want)
		}
	}
}

func TestALineageThatBeginsFollowsFromWhatIsThere(t *testing.T) {
	t.Parallel()
	begin := func(cluster string, names ...string) string {
		var all []*Backup
		for _, name := range names {
			all = append(all, &Backup{Manifest: Manifest{Name: name, ClusterID: cluster}, Problem: "lost"})
		}
		s := &Saved{Manifest: &Manifest{ClusterID: cluster, Quorum: true}}
		s.continueLineage(all)
		return s.Manifest.Lineage
	}
	if a, b := begin("c"), begin("c"); a != b || len(a) != 16 {
		t.Errorf("two first ones: %q and %q", a, b)
	}
	if a, b := begin("c", "x", "y"), begin("c", "y"); a != b {
		t.Errorf("two after the same backup: %q and %q", a, b)
	}
	different := map[string]bool{begin("c"): true, begin("d"): true, begin("c", "x"): true, begin("c", "y"): true}
	if len(different) != 4 {
		t.Errorf("lineages of different histories are the same: %v", different)
	}
}

func FuzzParseKey(f *testing.F) {
	for _, seed := range []string{
		"0123456789abcdef/20260102T030405Z-00000000000000aa-00112233.db.zst.age", "0123456789abcdef/20260102T030405Z-00000000000000aa-00112233.verify-1.json",
		"x", "/", "0123456789abcdef/.db", "",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, key string) {
		if o, ok := parseKey(key); ok && (o.cluster+"/"+o.base != key[:len(o.cluster)+1+len(o.base)]) {
			t.Errorf("%q: %+v", key, o)
		}
	})
}

func FuzzParseManifest(f *testing.F) {
	f.Add([]byte(`{"schema":1,"name":"x"}`))
	f.Add([]byte(`{`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		if m, err := parseManifest(raw); (m == nil) == (err == nil) {
			t.Errorf("manifest %v, error %v", m, err)
		}
	})
}

// A cluster that was restored, or another one under the same id, may be at a
// later revision than the last backup. Its log tells.
func TestALogTooShortForItsRevisionBeginsALineage(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		index, newIndex uint64
		rev, newRev     int64
		carried         bool
	}{
		"one entry a revision":           {100, 150, 90, 140, true},
		"entries without a revision":     {100, 180, 90, 140, true},
		"a restore with a bump":          {100, 4, 90, 1_000_000_090, false},
		"a restore and many writes":      {100, 1004, 90, 1090, false},
		"the same revision":              {100, 98, 90, 90, true},
		"a snapshot that was overtaken":  {100, 60, 90, 80, true},
		"a backup that was not examined": {0, 4, 90, 140, true},
	} {
		t.Run(name, func(t *testing.T) {
			old := &Backup{Manifest: Manifest{
				Schema: 1, Name: "old", Lineage: "old", Quorum: true, CreatedAt: time.Unix(1, 0), Revision: tc.rev, AppliedIndex: tc.index,
			}}
			s := &Saved{Manifest: &Manifest{Quorum: true, Revision: tc.newRev, RevisionAfter: max(tc.newRev, tc.rev), AppliedIndex: tc.newIndex}}
			s.continueLineage([]*Backup{old})
			if got := s.Manifest.Lineage == "old" && len(s.Warnings) == 0; got != tc.carried {
				t.Errorf("carried on %t, %q; want %t", got, s.Warnings, tc.carried)
			}
		})
	}
}
