package health

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/coreos/go-semver/semver"

	"github.com/etcdkit/etcdkit/internal/output"
)

// KindUpgrade is what stands in the way of an upgrade, gathered on demand.
const KindUpgrade Kind = "upgrade"

// maxBackupAge is how old a backup may be before an upgrade.
const maxBackupAge = 24 * time.Hour

// UpgradeSteps returns the versions to which readiness is judged.
func UpgradeSteps() []string { return []string{"3.6", "3.7"} }

// upgradeStep is what a step needs.
type upgradeStep struct {
	from, patch string // the newest minor before it, and the oldest patch of that which is safe
	why         string // what older patches do
}

// steps follow etcd's upgrade guides.
func upgradeStepTo(to string) (upgradeStep, bool) {
	step, ok := map[string]upgradeStep{
		"3.6": {"3.5", "3.5.26", "members that were removed or promoted under an older patch come back, or lose their vote, after the step (etcd-io/etcd#19557, #20793)"},
		"3.7": {"3.6", "3.6.11", "an older patch may not work beside 3.7 during a rolling upgrade"},
	}[to]
	return step, ok
}

// UpgradeEvidence is what readiness is judged by beside the facts. Its zero
// value says that neither was looked at.
type UpgradeEvidence struct {
	Stored  *StoredMembers
	Backup  *BackupAge
	Skipped string // why the stored members were not looked at
}

// StoredMembers are the members as the database holds them, from a snapshot. A
// server of 3.5 lists those of its older store instead; one of 3.6 lists these.
type StoredMembers struct {
	Source  string
	Members []StoredMember
	Removed []uint64
}

// StoredMember is one member in a database.
type StoredMember struct {
	ID      uint64
	Name    string
	Learner bool
}

// BackupAge is the newest good backup.
type BackupAge struct {
	Where string
	Name  string // "" where there is none
	Age   time.Duration
	Error string // why it is not known
}

// Upgrade is whether the cluster is ready for a step.
type Upgrade struct {
	To    string `json:"to"`
	Ready bool   `json:"ready"`
}

// JudgeUpgrade adds to the report what stands in the way of an upgrade, each
// with its next step. The step must be one of UpgradeSteps.
func JudgeUpgrade(report *Report, to string, evidence UpgradeEvidence) error {
	step, ok := upgradeStepTo(to)
	if !ok {
		return fmt.Errorf("no readiness is known for %q; known: %s", to, strings.Join(UpgradeSteps(), ", "))
	}
	u := &upgradeJudge{report: report, to: to, step: step}
	u.versions()
	u.members()
	u.stored(evidence)
	u.backup(evidence.Backup)
	ready := report.Verdict != Unhealthy && report.Verdict != Unknown && !u.blocked
	report.Upgrade = &Upgrade{To: to, Ready: ready}
	switch {
	case ready:
		return nil
	case u.blocked && report.Verdict != Unhealthy:
		report.Verdict = Unhealthy
	}
	if report.Verdict == Unknown {
		return fmt.Errorf("%w: so it is not known whether the cluster is ready for %s", ErrUnknown, to)
	}
	return fmt.Errorf("%w: not ready for %s", ErrUnhealthy, to)
}

type upgradeJudge struct {
	report  *Report
	to      string
	step    upgradeStep
	blocked bool
}

func (u *upgradeJudge) block(member, next, format string, args ...any) {
	u.blocked = true
	u.find(Critical, member, next, format, args...)
}

func (u *upgradeJudge) find(severity Severity, member, next, format string, args ...any) {
	u.report.Problems = append(u.report.Problems, Problem{
		Severity: severity, Member: member, Check: KindUpgrade, Evidence: fmt.Sprintf(format, args...), Next: next,
	})
}

// versions wants every member on a patch from which the step is safe.
func (u *upgradeJudge) versions() {
	patch, target := semver.New(u.step.patch), semver.New(u.to+".0")
	for _, m := range u.report.Members {
		if !m.Listed {
			continue
		}
		if m.Status == nil {
			u.block(m.Label(), "start it, then look again", "its version is not known, because it does not answer")
			continue
		}
		v, err := semver.NewVersion(m.Status.Version)
		if err != nil {
			u.block(m.Label(), "look at it with: etcdkit endpoint status --cluster", "its version %q cannot be read", m.Status.Version)
			continue
		}
		plain := semver.Version{Major: v.Major, Minor: v.Minor, Patch: v.Patch} // a pre-release of a patch is not that patch
		next := fmt.Sprintf("upgrade it to the newest patch of %s first, at least %s", u.step.from, u.step.patch)
		switch {
		case v.Major == target.Major && v.Minor == target.Minor:
			u.find(Info, m.Label(), "upgrade the others", "it runs %s already", v)
		case target.LessThan(plain):
			u.block(m.Label(), "choose a newer version to upgrade to", "it runs %s, which is newer", v)
		case v.Major != patch.Major || v.Minor != patch.Minor:
			u.block(m.Label(), next+": one minor version at a time", "it runs %s; the step to %s begins at %s", v, u.to, u.step.from)
		case plain.LessThan(*patch) || v.PreRelease != "":
			u.block(m.Label(), next, "it runs %s: %s", v, u.step.why)
		}
		u.storage(m)
	}
}

// storage wants the step before this one to be complete: from 3.6 on, the
// storage version says so.
func (u *upgradeJudge) storage(m Member) {
	if u.step.from == "3.5" || strings.HasPrefix(m.Status.StorageVersion, u.step.from+".") || strings.HasPrefix(m.Status.StorageVersion, u.to+".") {
		return
	}
	stored := m.Status.StorageVersion
	if stored == "" {
		stored = "not set"
	}
	u.block(m.Label(), "finish the step to "+u.step.from+" on every member, then wait a minute and look again",
		"its storage version is %s, not %s: the last upgrade is not complete", stored, u.step.from)
}

// members wants no change of members or of versions to be half done.
func (u *upgradeJudge) members() {
	for _, m := range u.report.Members {
		if m.Listed && m.Learner {
			u.block(m.Label(), "etcdkit member promote "+m.IDHex+" --wait, or: etcdkit member remove "+m.IDHex, "it is still a learner")
		}
		if m.Status != nil && m.Status.DowngradeTarget != "" {
			u.block(m.Label(), "etcdkit downgrade cancel", "a downgrade to %s is enabled", m.Status.DowngradeTarget)
		}
	}
}

// stored compares the member list with the members in the database, which
// decide after the step.
func (u *upgradeJudge) stored(evidence UpgradeEvidence) {
	s := evidence.Stored
	if s == nil {
		u.report.Gaps = append(u.report.Gaps, Gap{Check: KindUpgrade, Reason: evidence.Skipped})
		return
	}
	listed := func(m StoredMember) bool {
		return slices.ContainsFunc(u.report.Members, func(l Member) bool { return l.Listed && l.ID == m.ID })
	}
	if !slices.ContainsFunc(s.Members, listed) {
		u.block("", "take one of this cluster with: etcdkit snapshot save FILE", "%s holds no member of this cluster", s.Source)
		return
	}
	var stored []uint64
	for _, m := range s.Members {
		stored = append(stored, m.ID)
		i := slices.IndexFunc(u.report.Members, func(l Member) bool { return l.Listed && l.ID == m.ID })
		switch {
		case i < 0:
			u.block(m.Name, u.syncNext(), "%s holds member %s, which is not in the member list: it would come back in %s", s.Source, output.ID(m.ID), u.to)
		case m.Learner != u.report.Members[i].Learner:
			u.block(u.report.Members[i].Label(), u.syncNext(), "%s holds it as learner=%v, the member list says %v", s.Source, m.Learner, u.report.Members[i].Learner)
		case slices.Contains(s.Removed, m.ID):
			u.block(u.report.Members[i].Label(), u.syncNext(), "%s holds it as a member and as removed", s.Source)
		}
	}
	for _, m := range u.report.Members {
		if m.Listed && !slices.Contains(stored, m.ID) {
			u.block(m.Label(), u.syncNext(), "%s does not hold it: it would be missing in %s", s.Source, u.to)
		}
	}
}

// syncNext is what brings the two stores together.
func (u *upgradeJudge) syncNext() string {
	return fmt.Sprintf("upgrade every member to %s or newer, which brings both stores together when it starts, then take another snapshot and look again", u.step.patch)
}

// backup wants a backup to go back to.
func (u *upgradeJudge) backup(b *BackupAge) {
	const next = "etcdkit snapshot save REPO"
	switch {
	case b == nil:
		u.report.Gaps = append(u.report.Gaps, Gap{Check: KindUpgrade, Reason: "no backup was looked for: name a repository with --repository"})
	case b.Error != "":
		u.block("", "check the repository", "the newest backup in %s is not known: %s", b.Where, b.Error)
	case b.Name == "":
		u.block("", next, "there is no good backup in %s", b.Where)
	case b.Age > maxBackupAge:
		u.block("", next, "the newest good backup in %s is %s old: %s", b.Where, output.Duration(b.Age), b.Name)
	}
}
