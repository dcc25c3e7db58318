package commands

import (
	"testing"

	"github.com/etcdkit/etcdkit/disk"
)

// An "ok" that is worth less says so in its own line.
func TestVerdictWords(t *testing.T) {
	unmet := []disk.Outcome{{Requirement: disk.Requirement{Metric: disk.P99, Limit: 0.01}, Got: 0.014}}
	doubts := []disk.Warning{{Name: "network"}, {Name: "unseen"}, {Name: "network"}}
	for want, r := range map[string]*disk.Report{
		"ok":             {Judgement: disk.Judgement{Verdict: disk.OK}},
		"ok, borderline": {Judgement: disk.Judgement{Verdict: disk.OK, Borderline: unmet}},
		"ok, borderline, with warnings (network, unseen)": {Judgement: disk.Judgement{Verdict: disk.OK, Borderline: unmet}, Warnings: doubts},
		"slow": {Judgement: disk.Judgement{Verdict: disk.Slow}, Warnings: doubts},
	} {
		if got := verdictWords(r); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
