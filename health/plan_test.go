package health

import (
	"errors"
	"slices"
	"strings"
	"testing"
)

// fragmented is a sound cluster in which every member is worth it, a leads.
func fragmented() Facts {
	f := sound()
	for i := range f.Members {
		f.Members[i].Status.SizeBytes, f.Members[i].Status.InUseBytes = 1000<<20, 100<<20
	}
	return f
}

func TestPlanDefrag(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*Facts)
		opts   DefragOptions
		want   string // "action member" in order
		err    error
	}{
		"followers first, the leader last and after it handed on (etcd-io/etcd#15477)": {
			want: "defrag b, defrag c, move-leader a, defrag a",
		},
		"members that are not worth it are skipped": {
			change: func(f *Facts) { f.Members[1].Status.InUseBytes = 900 << 20 },
			want:   "skip b, defrag c, move-leader a, defrag a",
		},
		"a small loss is not worth it however large its share": {
			change: func(f *Facts) { f.Members[1].Status.SizeBytes, f.Members[1].Status.InUseBytes = 10<<20, 1<<20 },
			want:   "skip b, defrag c, move-leader a, defrag a",
		},
		"a quota nearly used up makes a smaller loss worth it": {
			change: func(f *Facts) {
				f.Members[1].Status.InUseBytes, f.Members[1].Status.QuotaBytes = 800<<20, 1100<<20
			},
			want: "defrag b, defrag c, move-leader a, defrag a",
		},
		"all means all": {
			change: func(f *Facts) { *f = sound() },
			opts:   DefragOptions{All: true},
			want:   "defrag b, defrag c, move-leader a, defrag a",
		},
		"chosen members are taken, worth it or not": {
			change: func(f *Facts) { *f = sound() },
			opts:   DefragOptions{Members: []string{"c", "http://b:2379"}},
			want:   "skip a, defrag b, defrag c",
		},
		"a member may be chosen by its id": {
			opts: DefragOptions{Members: []string{"2"}},
			want: "skip a, skip c, defrag b",
		},
		"without quorum nothing is known of those that do not answer": {
			change: func(f *Facts) { *f = sound(); down(&f.Members[1]); down(&f.Members[2]) },
			want:   "skip a, skip b, skip c", err: ErrUnknown,
		},
		"a name that no member has is an error": {opts: DefragOptions{Members: []string{"x"}}, err: ErrNoMember},
		"the leader is left out on demand": {
			opts: DefragOptions{SkipLeader: true},
			want: "skip a, defrag b, defrag c",
		},
		"learners are left out": {
			change: func(f *Facts) { f.Members[1].Learner = true },
			want:   "skip b, defrag c, move-leader a, defrag a",
		},
		"a single member cannot hand leadership on": {
			change: func(f *Facts) { f.Members = f.Members[:1] },
			want:   "defrag a",
		},
		"with one member dead nobody may stand still": {
			change: func(f *Facts) { down(&f.Members[2]) },
			want:   "skip c, defrag b, move-leader a, defrag a", err: ErrRefused,
		},
		"an armed NOSPACE needs more than a defragmentation": {
			change: func(f *Facts) { f.Members[0].Status.Alarms = []Alarm{{alarmNoSpace, 2}} },
			want:   "defrag b, defrag c, move-leader a, defrag a", err: ErrUnhealthy,
		},
		"but is no reason to stop for who recovers from it": {
			change: func(f *Facts) { f.Members[0].Status.Alarms = []Alarm{{alarmNoSpace, 2}} },
			opts:   DefragOptions{NoSpace: true},
			want:   "defrag b, defrag c, move-leader a, defrag a",
		},
		"an armed CORRUPT always is": {
			change: func(f *Facts) { f.Members[0].Status.Alarms = []Alarm{{alarmCorrupt, 2}} },
			opts:   DefragOptions{NoSpace: true},
			want:   "defrag b, defrag c, move-leader a, defrag a", err: ErrUnhealthy,
		},
		"unless that is forced": {
			change: func(f *Facts) { down(&f.Members[2]) },
			opts:   DefragOptions{Force: true},
			want:   "skip c, defrag b, move-leader a, defrag a",
		},
		"with one member dead and nothing to do there is nothing to refuse": {
			change: func(f *Facts) { *f = sound(); down(&f.Members[2]) },
			want:   "skip a, skip b, skip c",
		},
		"free space of a name that no member has is an error": {opts: DefragOptions{MustExist: []string{"x"}}, err: ErrNoMember},
		"a disk too small for the copy is refused (etcd-io/etcd#15001)": {
			opts: DefragOptions{DiskFree: map[string]int64{"b": 99 << 20, "c": 100 << 20}},
			want: "defrag b, defrag c, move-leader a, defrag a", err: ErrRefused,
		},
	} {
		t.Run(name, func(t *testing.T) {
			facts := fragmented()
			if tc.change != nil {
				tc.change(&facts)
			}
			plan, err := PlanDefrag(facts, tc.opts)
			var got []string
			for _, a := range plan {
				got = append(got, a.Action+" "+a.Member)
			}
			if strings.Join(got, ", ") != tc.want || !errors.Is(err, tc.err) || (err == nil) != (tc.err == nil) {
				t.Errorf("got %v, %v; want %s, %v", got, err, tc.want, tc.err)
			}
		})
	}
}

func TestPlanForecasts(t *testing.T) {
	plan, err := PlanDefrag(fragmented(), DefragOptions{DiskFree: map[string]int64{"a": 1 << 40}})
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(plan, func(a Action) bool { return a.Action == actionDefrag && a.Member == "a" })
	got := plan[i]
	if got.ReclaimBytes != 900<<20 || got.NeedBytes != 100<<20 || got.Disk != diskEnough || got.PauseSeconds < 0.5 || got.PauseSeconds > 5 {
		t.Errorf("forecast %+v, want 900 MiB back, 100 MiB needed and there, about a second", got)
	}
}

func TestSuccessors(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*Facts)
		want   []string
	}{
		"all other voters":                       {want: []string{"b", "c"}},
		"the one that has applied most is first": {func(f *Facts) { f.Members[2].Status.Applied = 900 }, []string{"c", "b"}},
		"the faster one among equals is first":   {func(f *Facts) { f.Members[2].Reads.MedianSeconds = 0.0001 }, []string{"c", "b"}},
		"no learner leads":                       {func(f *Facts) { f.Members[1].Learner = true }, []string{"c"}},
		"no member leads that does not answer":   {func(f *Facts) { down(&f.Members[1]) }, []string{"c"}},
		"no member leads that serves no reads":   {func(f *Facts) { f.Members[1].Reads.Error = "timeout" }, []string{"c"}},
	} {
		t.Run(name, func(t *testing.T) {
			facts := sound()
			if tc.change != nil {
				tc.change(&facts)
			}
			var got []string
			for _, m := range Successors(facts, 1) {
				got = append(got, m.Name)
			}
			if !slices.Equal(got, tc.want) {
				t.Errorf("got %v, want %v", got, tc.want)
			}
		})
	}
}

func TestVoting(t *testing.T) {
	for name, tc := range map[string]struct {
		voting         Voting
		quorum, canErr int
		serves         bool
	}{
		"one alone":                    {Voting{Voters: 1, Alive: 1}, 1, 0, true},
		"two members bear no failure":  {Voting{Voters: 2, Alive: 2}, 2, 0, true},
		"three bear one":               {Voting{Voters: 3, Alive: 3}, 2, 1, true},
		"four bear no more than three": {Voting{Voters: 4, Alive: 4}, 3, 1, true},
		"five bear two":                {Voting{Voters: 5, Alive: 5}, 3, 2, true},
		"three with one dead":          {Voting{Voters: 3, Alive: 2}, 2, 0, true},
		"three with two dead":          {Voting{Voters: 3, Alive: 1}, 2, 0, false},
		"one and a second voter that has not started (etcd-io/etcd#11633)": {Voting{Voters: 1, Alive: 1}.With(false), 2, 0, false},
		"removing the dead one of three":                                   {Voting{Voters: 3, Alive: 2}.Without(Life{Seen: true}), 2, 0, true},
		"removing a living one of three with one dead stops it":            {Voting{Voters: 3, Alive: 2}.Without(Life{Alive: true, Seen: true}), 2, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			v := tc.voting
			if v.Quorum() != tc.quorum || v.CanLose() != tc.canErr || v.Serves() != tc.serves {
				t.Errorf("%v: quorum %d, can lose %d, serves %v; want %d, %d, %v", v, v.Quorum(), v.CanLose(), v.Serves(), tc.quorum, tc.canErr, tc.serves)
			}
		})
	}
}
