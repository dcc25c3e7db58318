package snapshot_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/etcdkit/etcdkit/snapshot"
)

// backups builds backups from a drawing, oldest first: each word is an age
// before now, with ! for one without quorum, + for an examined and = for a verified
// one, @m for a member, #n for a revision.
func backups(t *testing.T, now time.Time, drawing string) []*snapshot.Backup {
	t.Helper()
	var all []*snapshot.Backup
	for word := range strings.FieldsSeq(drawing) {
		age, revision, _ := strings.Cut(word, "#")
		age, member, _ := strings.Cut(age, "@")
		age, bad := strings.CutSuffix(age, "!")
		age, examined := strings.CutSuffix(age, "+")
		age, verified := strings.CutSuffix(age, "=")
		var v *snapshot.Verification
		if verified {
			v = &snapshot.Verification{Result: snapshot.ResultOK, OK: true, Level: snapshot.LevelDecoded}
		}
		d, err := time.ParseDuration(age)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, &snapshot.Backup{Manifest: snapshot.Manifest{
			Schema: 1, Name: word, CreatedAt: now.Add(-d), Quorum: !bad, MemberID: member, StoredBytes: 100, Lineage: "a", ClusterID: "c",
			Revision: number(t, revision), Examined: examined,
		}, Verified: v})
	}
	return all
}

func number(t *testing.T, s string) int64 {
	t.Helper()
	if s == "" {
		return 0
	}
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestPolicy(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 15, 12, 30, 0, 0, time.UTC) // a Sunday
	const days = "2400h 1200h 720h 480h 240h 170h 120h 72h 49h 48h 25h 24h 2h 1h"
	for name, tc := range map[string]struct {
		policy snapshot.Policy
		all    string
		want   string
	}{
		"last":                                 {snapshot.Policy{Last: 3}, days, "24h 2h 1h"},
		"last more than there are":             {snapshot.Policy{Last: 99}, "2h 1h", "2h 1h"},
		"hourly takes the newest of each hour": {snapshot.Policy{Hourly: 2}, "70m 65m 20m 10m", "65m 10m"},
		"daily takes the newest of each day":   {snapshot.Policy{Daily: 3}, days, "48h 24h 1h"},
		"weekly":                               {snapshot.Policy{Weekly: 3}, days, "480h 170h 1h"},
		"monthly":                              {snapshot.Policy{Monthly: 3}, days, "1200h 480h 1h"},
		"yearly":                               {snapshot.Policy{Yearly: 3}, days, "2400h 1h"},
		"rules add up":                         {snapshot.Policy{Last: 2, Yearly: 2}, days, "2400h 2h 1h"},
		"within":                               {snapshot.Policy{Within: 30 * time.Hour}, days, "25h 24h 2h 1h"},
		"the newest stays though no rule says so":                    {snapshot.Policy{Within: time.Minute}, days, "1h"},
		"size alone keeps what fits":                                 {snapshot.Policy{MaxSize: 350}, days, "24h 2h 1h"},
		"size limits the rules":                                      {snapshot.Policy{Last: 5, MaxSize: 200}, days, "2h 1h"},
		"size never takes the newest":                                {snapshot.Policy{MaxSize: 1}, days, "1h"},
		"no quorum takes no place":                                   {snapshot.Policy{Last: 2}, "5h 4h 3h! 2h 1h!", "4h 2h 1h!"},
		"without any good one all stay":                              {snapshot.Policy{Last: 1}, "3h! 2h! 1h!", "3h! 2h! 1h!"},
		"members are counted together (k3s-io/k3s#9866)":             {snapshot.Policy{Last: 2}, "4h@a 3h@b 2h@a 1h@a", "2h@a 1h@a"},
		"or apart, when asked (k3s-io/k3s#9866)":                     {snapshot.Policy{Last: 1, ByMember: true}, "4h@a 3h@b 2h@a 1h@a", "3h@b 1h@a"},
		"none":                                                       {snapshot.Policy{Last: 1}, "", ""},
		"a stamp in the future takes no place":                       {snapshot.Policy{Last: 1}, "3h 2h 1h -90h", "1h -90h"},
		"nor the newest one's protection":                            {snapshot.Policy{MaxSize: 1}, "3h 2h 1h -90h", "1h -90h"},
		"what a late clock stamped, stays":                           {snapshot.Policy{Last: 2}, "900h#9 3h#1 2h#2 1h#3", "900h#9 2h#2 1h#3"},
		"one that nobody looked into takes no place of one examined": {snapshot.Policy{Last: 2}, "5h+ 4h+ 3h 2h", "5h+ 4h+ 3h 2h"},
		"nor by the day":                                             {snapshot.Policy{Daily: 2}, "73h+ 49h+ 25h 1h", "73h+ 49h+ 25h 1h"},
		"those examined take each other's":                           {snapshot.Policy{Last: 1}, "5h 4h+ 3h 2h+", "2h+"},
		"without any examined one they go by age":                    {snapshot.Policy{Last: 1}, "3h 2h 1h", "1h"},
		"the newest verified one stays":                              {snapshot.Policy{Last: 1}, "5h= 4h= 3h+ 2h+ 1h", "4h= 2h+ 1h"},
		"whatever the size":                                          {snapshot.Policy{MaxSize: 1}, "5h= 4h= 3h+ 2h+ 1h", "4h= 2h+ 1h"},
		"no quorum takes no room":                                    {snapshot.Policy{MaxSize: 200}, "4h+ 3h+ 2h+ 1h!", "3h+ 2h+ 1h!"},
		"nor does one that nobody looked into":                       {snapshot.Policy{MaxSize: 200}, "5h+ 4h+ 3h+ 2h 1h", "4h+ 3h+ 2h 1h"},
		"whatever its size":                                          {snapshot.Policy{MaxSize: 1}, "900h#9 3h#1 2h#2 1h#3", "900h#9 1h#3"},
	} {
		t.Run(name, func(t *testing.T) {
			var kept []string
			for _, d := range tc.policy.Split(backups(t, now, tc.all), now) {
				if len(d.Reasons) == 0 {
					t.Errorf("%s has no reason", d.Backup.Name)
				}
				if d.Keep {
					kept = append(kept, d.Backup.Name)
				}
			}
			if got := strings.Join(kept, " "); got != tc.want {
				t.Errorf("kept %s, want %s", got, tc.want)
			}
		})
	}
}

func TestAPolicyWithoutARuleIsRefused(t *testing.T) {
	t.Parallel()
	for name, p := range map[string]snapshot.Policy{"empty": {}, "grouping alone": {ByMember: true}, "negative": {Last: -1}} {
		if p.Validate() == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

func TestLatest(t *testing.T) {
	t.Parallel()
	now := time.Now()
	lineage := func(all []*snapshot.Backup, names ...string) []*snapshot.Backup {
		for i, name := range names {
			all[i].Lineage = name
		}
		return all
	}
	for name, tc := range map[string]struct {
		all  []*snapshot.Backup
		any  bool
		want string
	}{
		"the newest":                   {backups(t, now, "3h 2h 1h"), false, "1h"},
		"not one without quorum":       {backups(t, now, "3h 2h 1h!"), false, "2h"},
		"unless asked for":             {backups(t, now, "3h 2h 1h!"), true, "1h!"},
		"of the newest lineage":        {lineage(backups(t, now, "3h 2h 1h"), "x", "x", "y"), false, "1h"},
		"newest lineage, its good one": {lineage(backups(t, now, "3h 2h 1h!"), "x", "y", "y"), false, "2h"},
		"by revision, not by clock":    {backups(t, now, "3h#9 2h#1 1h#2"), false, "3h#9"},
		"of one revision the youngest": {backups(t, now, "3h#2 2h#2 1h#1"), false, "2h#2"},
		"none":                         {nil, false, "error"},
		"none is good":                 {backups(t, now, "1h!"), false, "error"},
	} {
		t.Run(name, func(t *testing.T) {
			b, err := snapshot.Latest(tc.all, tc.any)
			got := "error"
			if err == nil {
				got = b.Name
			}
			if got != tc.want {
				t.Errorf("got %s, want %s", fmt.Sprint(got), tc.want)
			}
		})
	}
}
