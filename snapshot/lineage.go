package snapshot

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"github.com/etcdkit/etcdkit/internal/store"
)

// earlier is what a repository holds before a backup gets its manifest, down to
// the newest good one. It is looked at before the question for the revision after
// the snapshot: whatever is seen, even of a run at the same moment, is then no
// newer than the answer.
type earlier struct {
	backups []*Backup
	err     error // why they could not be listed
}

// setLineage gives the new backup its lineage: that of the newest good one,
// unless the cluster's revision went back, or its log is too short for its
// revision. Then it is another cluster under the same id or one restored from a
// backup.
func (s *Saved) setLineage(e earlier) error {
	if errors.Is(e.err, store.ErrDenied) {
		s.Warnings = append(s.Warnings, "the earlier backups cannot be read, so this one starts a lineage of its own: "+e.err.Error())
		s.Manifest.Lineage = newRun() + newRun()
		return nil
	}
	if e.err != nil {
		return fmt.Errorf("look at earlier backups: %w", e.err)
	}
	s.continueLineage(e.backups)
	return nil
}

// warnOfClocks tells of the youngest backup that a wrong clock stamped.
func (s *Saved) warnOfClocks(all []*Backup, now time.Time) {
	if len(all) == 0 || !inFuture(all[len(all)-1].CreatedAt, now) {
		return
	}
	b := all[len(all)-1]
	s.Warnings = append(s.Warnings, fmt.Sprintf("the clock of this machine, or of the one that made backup %s, is wrong: it is stamped %s, in the future",
		b.Name, b.CreatedAt.UTC().Format(time.RFC3339)))
}

func (s *Saved) continueLineage(all []*Backup) {
	m := s.Manifest
	newest, err := newestGood(all, false)
	if err != nil {
		if m.Quorum {
			m.Lineage = lineageAfter(m.ClusterID, all)
		}
		return
	}
	// A snapshot may be older than one that a faster run has stored meanwhile;
	// what counts is where the cluster was when it had been taken.
	reached := max(m.Revision, m.RevisionAfter)
	wrong := ""
	switch {
	case !m.Quorum:
	case reached < newest.earliest():
		wrong = fmt.Sprintf("the cluster's revision went back: it is at most %d, and was at least %d", reached, newest.earliest())
	case m.logIsShorter(newest):
		wrong = fmt.Sprintf("the cluster's log is too short for its revision: entry %d made revision %d, and entry %d made revision %d",
			m.AppliedIndex, m.Revision, newest.AppliedIndex, newest.Revision)
	}
	if wrong == "" {
		m.Lineage = newest.Lineage
		return
	}
	m.Lineage = lineageAfter(m.ClusterID, all)
	s.Warnings = append(s.Warnings, fmt.Sprintf("%s in the backup of %s. "+
		"This is another cluster under the same id, or it was restored from a backup: a new lineage %s begins, the old one %s is kept",
		wrong, newest.CreatedAt.Format(time.RFC3339), m.Lineage, newest.Lineage))
}

// logIsShorter reports whether a later revision than before's was reached with
// fewer entries of the log than one history needs. An entry makes at most one
// revision, so the index less the revision never falls; a restore begins a new
// log. Where the revision is not later, the snapshots may have overtaken each
// other, and nothing is known.
func (m *Manifest) logIsShorter(before *Backup) bool {
	if m.AppliedIndex == 0 || before.AppliedIndex == 0 || before.Revision == 0 || m.Revision <= before.Revision {
		return false
	}
	return int64(m.AppliedIndex)-m.Revision < int64(before.AppliedIndex)-before.Revision
}

// lineageAfter names the lineage that begins after the backups given. It
// follows from the newest of them alone, so that runs which begin one at the
// same moment begin the same, without a word between them.
func lineageAfter(cluster string, all []*Backup) string {
	seed := "etcdkit lineage of " + cluster
	if len(all) > 0 {
		seed += " after " + all[len(all)-1].Name
	}
	sum := sha256.Sum256([]byte(seed))
	return hex.EncodeToString(sum[:runDigits])
}
