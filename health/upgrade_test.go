package health

import (
	"errors"
	"strings"
	"testing"
	"time"
)

// threeOf are three members that serve, of this version.
func threeOf(version, storage string) []Member {
	var all []Member
	for i, name := range []string{"m1", "m2", "m3"} {
		all = append(all, Member{
			Name: name, ID: uint64(i + 1), IDHex: "000000000000000" + string(rune('1'+i)), Listed: true, Reachable: true, Reads: &Reads{Count: 1},
			Status: &Status{Version: version, StorageVersion: storage, LeaderID: 1},
		})
	}
	return all
}

func storedOf(members []Member) *StoredMembers {
	s := &StoredMembers{Source: "now.db"}
	for _, m := range members {
		s.Members = append(s.Members, StoredMember{ID: m.ID, Name: m.Name, Learner: m.Learner})
	}
	return s
}

func TestJudgeUpgrade(t *testing.T) {
	const hour = time.Hour
	good := func() (Report, UpgradeEvidence) {
		members := threeOf("3.5.26", "")
		return Report{Verdict: Healthy, Facts: Facts{Members: members}}, UpgradeEvidence{Stored: storedOf(members), Backup: &BackupAge{Where: "@main", Name: "b", Age: hour}}
	}
	for name, tc := range map[string]struct {
		to     string
		change func(*Report, *UpgradeEvidence)
		want   string // evidence of the blocker, "" for ready
	}{
		"a newest patch":                {"3.6", func(*Report, *UpgradeEvidence) {}, ""},
		"a newer patch":                 {"3.6", func(r *Report, _ *UpgradeEvidence) { r.Members[0].Status.Version = "3.5.35" }, ""},
		"a member that is done":         {"3.6", func(r *Report, _ *UpgradeEvidence) { r.Members[0].Status.Version = "3.6.16" }, ""},
		"an affected patch":             {"3.6", func(r *Report, _ *UpgradeEvidence) { r.Members[2].Status.Version = "3.5.25" }, "#19557"},
		"a candidate of the patch":      {"3.6", func(r *Report, _ *UpgradeEvidence) { r.Members[2].Status.Version = "3.5.26-rc.0" }, "3.5.26-rc.0"},
		"a minor too old":               {"3.6", func(r *Report, _ *UpgradeEvidence) { r.Members[2].Status.Version = "3.4.30" }, "begins at 3.5"},
		"a minor too new":               {"3.6", func(r *Report, _ *UpgradeEvidence) { r.Members[2].Status.Version = "3.7.0" }, "which is newer"},
		"two minors at once":            {"3.7", func(*Report, *UpgradeEvidence) {}, "begins at 3.6"},
		"a member that does not tell":   {"3.6", func(r *Report, _ *UpgradeEvidence) { r.Members[1].Status = nil }, "does not answer"},
		"a learner":                     {"3.6", func(r *Report, e *UpgradeEvidence) { r.Members[1].Learner = true; e.Stored = storedOf(r.Members) }, "still a learner"},
		"a downgrade":                   {"3.6", func(r *Report, _ *UpgradeEvidence) { r.Members[1].Status.DowngradeTarget = "3.5.0" }, "downgrade to 3.5.0"},
		"a member that comes back":      {"3.6", func(_ *Report, e *UpgradeEvidence) { e.Stored.Members = append(e.Stored.Members, StoredMember{ID: 9}) }, "would come back"},
		"a member that gets lost":       {"3.6", func(_ *Report, e *UpgradeEvidence) { e.Stored.Members = e.Stored.Members[1:] }, "would be missing"},
		"a vote that gets lost":         {"3.6", func(_ *Report, e *UpgradeEvidence) { e.Stored.Members[1].Learner = true }, "learner=true, the member list says false"},
		"a member stored as removed":    {"3.6", func(_ *Report, e *UpgradeEvidence) { e.Stored.Removed = []uint64{1} }, "as removed"},
		"a snapshot of others":          {"3.6", func(_ *Report, e *UpgradeEvidence) { e.Stored.Members = []StoredMember{{ID: 77}} }, "no member of this cluster"},
		"no snapshot":                   {"3.6", func(_ *Report, e *UpgradeEvidence) { e.Stored, e.Skipped = nil, "none" }, ""},
		"an old backup":                 {"3.6", func(_ *Report, e *UpgradeEvidence) { e.Backup.Age = 25 * hour }, "old: b"},
		"no backup":                     {"3.6", func(_ *Report, e *UpgradeEvidence) { e.Backup = &BackupAge{Where: "@main"} }, "no good backup"},
		"a repository that fails":       {"3.6", func(_ *Report, e *UpgradeEvidence) { e.Backup.Error = "refused" }, "refused"},
		"no repository":                 {"3.6", func(_ *Report, e *UpgradeEvidence) { e.Backup = nil }, ""},
		"an unhealthy cluster":          {"3.6", func(r *Report, _ *UpgradeEvidence) { r.Verdict = Unhealthy }, "-"},
		"3.7 from 3.6.11":               {"3.7", func(r *Report, _ *UpgradeEvidence) { r.Members = threeOf("3.6.11", "3.6.0") }, ""},
		"3.7 from 3.6.10":               {"3.7", func(r *Report, _ *UpgradeEvidence) { r.Members = threeOf("3.6.10", "3.6.0") }, "rolling upgrade"},
		"3.7 with the last step open":   {"3.7", func(r *Report, _ *UpgradeEvidence) { r.Members = threeOf("3.6.16", "3.5.0") }, "not complete"},
		"3.7 without a storage version": {"3.7", func(r *Report, _ *UpgradeEvidence) { r.Members = threeOf("3.6.16", "") }, "not set"},
	} {
		t.Run(name, func(t *testing.T) {
			report, evidence := good()
			tc.change(&report, &evidence)
			err := JudgeUpgrade(&report, tc.to, evidence)
			ready := tc.want == ""
			if (err == nil) != ready || report.Upgrade.Ready != ready || !ready && (!errors.Is(err, ErrUnhealthy) || report.Verdict != Unhealthy) {
				t.Fatalf("got %v, %+v, %s; want ready %t", err, report.Upgrade, report.Verdict, ready)
			}
			found := tc.want == "" || tc.want == "-"
			for _, p := range report.Problems {
				if p.Next == "" {
					t.Errorf("no next step for %q", p.Evidence)
				}
				found = found || p.Severity == Critical && strings.Contains(p.Evidence, tc.want)
			}
			if !found {
				t.Errorf("no blocker with %q: %+v", tc.want, report.Problems)
			}
		})
	}
	if err := JudgeUpgrade(&Report{}, "4.0", UpgradeEvidence{}); err == nil {
		t.Error("an unknown step is judged")
	}
	report := Report{Verdict: Unknown, Facts: Facts{Members: threeOf("3.5.26", "")}}
	if err := JudgeUpgrade(&report, "3.6", UpgradeEvidence{}); !errors.Is(err, ErrUnknown) {
		t.Errorf("got %v, want that it is not known", err)
	}
}

func TestTwoVotersTolerateNoFailure(t *testing.T) {
	members := threeOf("3.7.3", "3.7.0")[:2]
	report := Judge(Facts{Members: members}, Options{})
	found := false
	for _, p := range report.Problems {
		found = found || p.Severity == Info && strings.Contains(p.Evidence, "2 voters tolerate 0 failures")
	}
	if !found {
		t.Errorf("not said: %+v", report.Problems)
	}
	for _, n := range []int{1, 3} {
		for _, p := range Judge(Facts{Members: threeOf("3.7.3", "3.7.0")[:n]}, Options{}).Problems {
			if strings.Contains(p.Evidence, "tolerate 0 failures") {
				t.Errorf("%d voters: %s", n, p.Evidence)
			}
		}
	}
}

func TestAnEnabledDowngradeIsShown(t *testing.T) {
	members := threeOf("3.7.3", "3.7.0")
	members[1].Status.DowngradeTarget = "3.6.0"
	for _, p := range Judge(Facts{Members: members}, Options{}).Problems {
		if p.Check == KindVersion && p.Severity == Info && strings.Contains(p.Evidence, "downgrade to 3.6.0") && strings.Contains(p.Next, "downgrade cancel") {
			return
		}
	}
	t.Error("the downgrade is not shown")
}
