package health

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/etcdkit/etcdkit/internal/output"
)

var noon = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

// sound is a cluster of three members that nothing is wrong with.
func sound() Facts {
	f := Facts{Time: noon, Cluster: Cluster{Voters: 3}}
	for i, name := range []string{"a", "b", "c"} {
		id := uint64(i + 1)
		f.Members = append(f.Members, Member{
			Name: name, ID: id, IDHex: output.ID(id), Endpoint: "http://" + name + ":2379", Listed: true, Reachable: true,
			ClientURLs: []string{"http://" + name + ":2379"},
			Status: &Status{
				Version: "3.7.3", LeaderID: 1, Term: 2, Index: 100, Applied: 100, Revision: 10,
				SizeBytes: 20 << 20, InUseBytes: 10 << 20, QuotaBytes: 2 << 30,
			},
			Reads: &Reads{Count: 5, MinSeconds: 0.001, MedianSeconds: 0.002},
		})
	}
	return f
}

func p99(sample float64, count uint64) *Timing {
	return &Timing{SampleP99Seconds: &sample, SampleCount: count, TotalP99Seconds: &sample, TotalCount: count}
}

func down(m *Member) {
	*m = Member{Name: m.Name, ID: m.ID, IDHex: m.IDHex, Endpoint: m.Endpoint, Listed: true, ClientURLs: m.ClientURLs, Error: "connection refused"}
}

func TestJudge(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*Facts)
		opts   Options
		want   Verdict
		checks []Kind // of the problems and gaps, in order
	}{
		"three sound members are healthy": {want: Healthy},
		"a dead member of three leaves the cluster degraded": {
			change: func(f *Facts) { down(&f.Members[1]) },
			want:   Degraded, checks: []Kind{KindReach, KindQuorum},
		},
		"without quorum the cluster is unhealthy": {
			change: func(f *Facts) {
				down(&f.Members[1])
				down(&f.Members[2])
				f.Members[0].Status.LeaderID = 0
				f.Members[0].Reads = &Reads{Error: "deadline exceeded"}
			},
			want: Unhealthy, checks: []Kind{KindLeader, KindReads, KindReach, KindReach},
		},
		"members that only this host cannot reach do not make it unhealthy": {
			change: func(f *Facts) { down(&f.Members[1]); down(&f.Members[2]) },
			want:   Degraded, checks: []Kind{KindReach, KindReach, KindQuorum},
		},
		"nothing passes where nothing answered (vmware/etcd-diagnosis#11)": {
			change: func(f *Facts) {
				f.Members = []Member{{Endpoint: "http://x:2379", Error: "refused"}}
				f.Cluster = Cluster{}
			},
			want: Unknown, checks: []Kind{KindReach, KindReach},
		},
		"an armed NOSPACE is unhealthy though reads are served (etcd-io/etcd#16337)": {
			change: func(f *Facts) { f.Members[2].Status.Alarms = []Alarm{{"NOSPACE", 2}} },
			want:   Unhealthy, checks: []Kind{KindAlarms},
		},
		"an alarm that every member knows is one problem": {
			change: func(f *Facts) {
				for i := range f.Members {
					f.Members[i].Status.Alarms = []Alarm{{"CORRUPT", 3}}
				}
			},
			want: Unhealthy, checks: []Kind{KindAlarms},
		},
		"an expected NOSPACE cannot hide CORRUPT": {
			change: func(f *Facts) { f.Members[0].Status.Alarms = []Alarm{{"NOSPACE", 1}, {"CORRUPT", 3}} },
			opts:   Options{NoSpace: true}, want: Unhealthy, checks: []Kind{KindAlarms, KindAlarms},
		},
		"an expected NOSPACE alone is no reason to stop": {
			change: func(f *Facts) {
				f.Members[0].Status.Alarms = []Alarm{{"NOSPACE", 1}}
				f.Members[0].Status.SizeBytes = 2 << 30
				f.Members[0].Status.InUseBytes = 2 << 30
			},
			opts: Options{NoSpace: true}, want: Healthy, checks: []Kind{KindAlarms},
		},
		"a quota nobody tells is required evidence (etcd-io/etcd#17872)": {
			change: func(f *Facts) { f.Members[1].Status.QuotaBytes = 0 },
			want:   Unknown, checks: []Kind{KindQuota},
		},
		"a quota that is switched off is an answer": {
			change: func(f *Facts) { f.Members[1].Status.QuotaBytes = -1 },
			want:   Healthy,
		},
		"the caller's own certificate is one problem, wherever it is shown": {
			change: func(f *Facts) {
				for i := range f.Members {
					f.Members[i].Certs = []Certificate{{URL: "https://a", Use: certClient, NotAfter: noon.Add(day)}, {URL: "https://b", Use: certClient, NotAfter: noon.Add(day)}}
				}
			},
			want: Degraded, checks: []Kind{KindCerts},
		},
		"four fifths of the quota are a warning": {
			change: func(f *Facts) {
				f.Members[1].Status.SizeBytes, f.Members[1].Status.InUseBytes = 80, 80
				f.Members[1].Status.QuotaBytes = 100
			},
			want: Degraded, checks: []Kind{KindQuota},
		},
		"a quota nearly used up is critical": {
			change: func(f *Facts) {
				f.Members[1].Status.SizeBytes, f.Members[1].Status.InUseBytes = 96, 96
				f.Members[1].Status.QuotaBytes = 100
			},
			want: Unhealthy, checks: []Kind{KindQuota},
		},
		"a large file without data is worth a defragmentation": {
			change: func(f *Facts) { f.Members[1].Status.SizeBytes = 400 << 20 },
			want:   Degraded, checks: []Kind{KindSpace},
		},
		"a status refused for want of rights is unknown": {
			change: func(f *Facts) { f.Members[1].Status, f.Members[1].Error = nil, "user name is empty" },
			want:   Unknown, checks: []Kind{KindQuorum, KindAlarms},
		},
		"two leaders are critical": {
			change: func(f *Facts) { f.Members[1].Status.LeaderID = 2 },
			want:   Unhealthy, checks: []Kind{KindLeader},
		},
		"a member of another cluster among the endpoints is critical": {
			change: func(f *Facts) { f.Members[2].Listed = false },
			want:   Unhealthy, checks: []Kind{KindMembers, KindQuorum},
		},
		"entries that are not applied": {
			change: func(f *Facts) { f.Members[2].Status.Index = 2000 },
			want:   Degraded, checks: []Kind{KindLag},
		},
		"so many entries not applied that etcd refuses writes": {
			change: func(f *Facts) { f.Members[2].Status.Index = 7000 },
			want:   Unhealthy, checks: []Kind{KindLag, KindLag, KindLag},
		},
		"slow reads": {
			change: func(f *Facts) { f.Members[0].Reads.MedianSeconds = 0.2 },
			want:   Degraded, checks: []Kind{KindReads},
		},
		"a learner that cannot read is no problem": {
			change: func(f *Facts) {
				f.Members[2].Learner, f.Members[2].Status.Learner, f.Members[2].Reads = true, true, nil
				f.Members[2].Replication = &Replication{Committed: 100, Applied: 100}
			},
			want: Healthy, checks: []Kind{KindMembers, KindQuorum},
		},
		"a learner that does not receive what is committed (it keeps its leader)": {
			change: func(f *Facts) {
				f.Members[2].Learner, f.Members[2].Status.Learner, f.Members[2].Reads = true, true, nil
				f.Members[2].Replication = &Replication{Committed: 101, Applied: 100}
			},
			want: Degraded, checks: []Kind{KindLag, KindQuorum},
		},
		"a member that answers and serves no read is not alive": {
			change: func(f *Facts) { f.Members[1].Reads = &Reads{Error: "deadline exceeded"} },
			want:   Unhealthy, checks: []Kind{KindReads, KindQuorum},
		},
		"a URL where another member answers shows nothing of its owner": {
			change: func(f *Facts) {
				down(&f.Members[1])
				f.Members[1].OtherAnswers = []OtherAnswer{{URL: "http://b:2379", MemberID: 1}}
			},
			want: Unhealthy, checks: []Kind{KindReach, KindQuorum},
		},
		"a URL that members share beside their own": {
			change: func(f *Facts) { f.Members[1].OtherAnswers = []OtherAnswer{{URL: "http://all:2379", MemberID: 1}} },
			want:   Healthy, checks: []Kind{KindReach},
		},
		"two members of one name": {
			change: func(f *Facts) { f.Members[1].Name = "a" },
			want:   Degraded, checks: []Kind{KindMembers},
		},
		"two members with one URL and no other": {
			change: func(f *Facts) { f.Members[1].ClientURLs = []string{"a:2379/"} },
			want:   Degraded, checks: []Kind{KindMembers},
		},
		"a voter that calls itself a learner (etcd-io/etcd#18347)": {
			change: func(f *Facts) { f.Members[2].Status.Learner = true },
			want:   Degraded, checks: []Kind{KindQuorum, KindMembers},
		},
		"a minor version apart is an upgrade in progress": {
			change: func(f *Facts) { f.Members[2].Status.Version = "3.6.16" },
			want:   Degraded, checks: []Kind{KindVersion},
		},
		"two minor versions apart are not supported": {
			change: func(f *Facts) { f.Members[2].Status.Version = "3.5.35" },
			want:   Unhealthy, checks: []Kind{KindVersion},
		},
		"a release known to lose data": {
			change: func(f *Facts) {
				for i := range f.Members {
					f.Members[i].Status.Version = "3.5.2"
				}
			},
			want: Degraded, checks: []Kind{KindVersion, KindVersion, KindVersion},
		},
		"a certificate that ends in three weeks": {
			change: func(f *Facts) { f.Members[0].Certs = []Certificate{{Use: "peer", NotAfter: noon.Add(21 * day)}} },
			want:   Degraded, checks: []Kind{KindCerts},
		},
		"a certificate that has ended": {
			change: func(f *Facts) { f.Members[0].Certs = []Certificate{{Use: "server", NotAfter: noon.Add(-day)}} },
			want:   Unhealthy, checks: []Kind{KindCerts},
		},
		"a slow disk": {
			change: func(f *Facts) {
				f.Members[0].Metrics = &Metrics{WALFsync: p99(0.08, 60), BackendCommit: p99(0.01, 60)}
			},
			want: Degraded, checks: []Kind{KindMetrics},
		},
		"a percentile of three events is not judged": {
			change: func(f *Facts) {
				f.Members[0].Metrics = &Metrics{WALFsync: p99(0.08, 3), BackendCommit: p99(0.08, 3)}
			},
			want: Healthy,
		},
		"a leader that changed while we looked": {
			change: func(f *Facts) {
				f.Members[0].Metrics = &Metrics{WALFsync: p99(0, 0), BackendCommit: p99(0, 0), LeaderChanges: Count{Sample: 1}}
			},
			want: Degraded, checks: []Kind{KindMetrics},
		},
		"missing metrics are only listed": {
			change: func(f *Facts) { f.Gaps = []Gap{{Member: "a", Check: KindMetrics}} },
			want:   Healthy, checks: []Kind{KindMetrics},
		},
		"missing metrics count on demand": {
			change: func(f *Facts) { f.Gaps = []Gap{{Member: "a", Check: KindMetrics}} },
			opts:   Options{Require: []Kind{KindMetrics}}, want: Unknown, checks: []Kind{KindMetrics},
		},
		"hashes that differ": {
			change: func(f *Facts) { f.Cluster.Hash = &Hashes{Revision: 9, Result: HashesDiffer} },
			want:   Unhealthy, checks: []Kind{KindHash},
		},
		"hashes that could not be compared are only listed": {
			change: func(f *Facts) {
				f.Cluster.Hash = &Hashes{Result: HashesUnknown}
				f.Gaps = []Gap{{Check: KindHash}}
			},
			want: Healthy, checks: []Kind{KindHash},
		},
	} {
		t.Run(name, func(t *testing.T) {
			facts := sound()
			if tc.change != nil {
				tc.change(&facts)
			}
			got := Judge(facts, tc.opts)
			var checks []Kind
			for _, p := range got.Problems {
				checks = append(checks, p.Check)
				if p.Evidence == "" || p.Next == "" {
					t.Errorf("problem without evidence or next step: %+v", p)
				}
			}
			for _, g := range got.Gaps {
				checks = append(checks, g.Check)
			}
			if got.Verdict != tc.want || !slices.Equal(checks, tc.checks) {
				t.Errorf("got %s with %v, want %s with %v\n%+v\n%+v", got.Verdict, checks, tc.want, tc.checks, got.Problems, got.Gaps)
			}
		})
	}
}

func TestErr(t *testing.T) {
	warned := []Problem{{Severity: Warning}}
	for name, tc := range map[string]struct {
		report Report
		strict bool
		want   error
	}{
		"healthy is no error":                 {Report{Verdict: Healthy}, true, nil},
		"degraded is no error":                {Report{Verdict: Degraded, Problems: warned}, false, nil},
		"degraded is one where that is asked": {Report{Verdict: Degraded, Problems: warned}, true, ErrUnhealthy},
		"unhealthy":                           {Report{Verdict: Unhealthy}, false, ErrUnhealthy},
		"unknown":                             {Report{Verdict: Unknown, Problems: warned}, false, ErrUnknown},
		"a bad answer beats a missing one":    {Report{Verdict: Unknown, Problems: warned}, true, ErrUnhealthy},
	} {
		t.Run(name, func(t *testing.T) {
			if got := tc.report.Err(tc.strict); !errors.Is(got, tc.want) || (got == nil) != (tc.want == nil) {
				t.Errorf("Err = %v, want %v", got, tc.want)
			}
		})
	}
}

func TestJudgeHashes(t *testing.T) {
	a, b := MemberHash{Member: "a", Hash: 1, CompactRevision: 5}, MemberHash{Member: "b", Hash: 1, CompactRevision: 5}
	other, elsewhere, dead := b, b, MemberHash{Member: "c", Error: "down"}
	other.Hash, elsewhere.CompactRevision = 2, 7
	differentElsewhere := elsewhere
	differentElsewhere.Hash = 3
	for name, tc := range map[string]struct {
		hashes []MemberHash
		want   HashResult
	}{
		"the same": {[]MemberHash{a, b}, HashesEqual},
		"another":  {[]MemberHash{a, other}, HashesDiffer},
		"another compact revision covers other data":             {[]MemberHash{a, differentElsewhere}, HashesUnknown},
		"the dead do not count":                                  {[]MemberHash{a, b, dead}, HashesEqual},
		"one alone cannot be compared":                           {[]MemberHash{a, dead}, HashesUnknown},
		"a difference counts beside one that cannot be compared": {[]MemberHash{a, other, elsewhere}, HashesDiffer},
		"equal ones beside one that cannot be compared":          {[]MemberHash{a, b, elsewhere}, HashesUnknown},
	} {
		t.Run(name, func(t *testing.T) {
			if got := judgeHashes(9, tc.hashes).Result; got != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
		})
	}
}
