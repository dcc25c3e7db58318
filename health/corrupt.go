package health

import (
	"fmt"
	"slices"
	"strings"

	"github.com/etcdkit/etcdkit/internal/hint"
	"github.com/etcdkit/etcdkit/internal/output"
)

// goneNext makes sure of the data before the alarm of a member that is gone is
// cleared: until then etcd refuses all writes.
const goneNext = "etcdkit check consistency && etcdkit alarm disarm"

// corruptGone returns the members whose CORRUPT alarm is armed though they are
// in the cluster no more: an alarm stays behind when its member is removed.
func corruptGone(facts Facts) []uint64 {
	if facts.Cluster.Voters == 0 { // the list is not known
		return nil
	}
	return slices.DeleteFunc(alarmed(facts, alarmCorrupt), func(id uint64) bool {
		return slices.ContainsFunc(facts.Members, func(m Member) bool { return m.Listed && m.ID == id })
	})
}

// corruption refuses while CORRUPT is armed, and says which member differs and
// what to do about it.
func corruption(facts Facts) error {
	who := alarmed(facts, alarmCorrupt)
	if len(who) == 0 {
		return nil
	}
	member := strings.Join(names(facts, who), ", ")
	if len(corruptGone(facts)) == len(who) {
		return hint.With(fmt.Errorf("%w: %w for %s, which is gone", ErrRefused, ErrCorrupt, member),
			"make sure that the others agree before it is cleared: %s", goneNext)
	}
	var replace []string
	for _, m := range facts.Members {
		if m.Listed && slices.Contains(who, m.ID) {
			replace = append(replace, ReplaceCommand(m))
		}
	}
	return hint.With(fmt.Errorf("%w: %w on %s: its data differ from the others'", ErrRefused, ErrCorrupt, member),
		"find the difference with: etcdkit check consistency, then give the member fresh data: %s, or restore the cluster from a backup",
		strings.Join(replace, ", "))
}

// unfit is an alarm that forbids a defragmentation: no waiting clears it.
func unfit(facts Facts, noSpace bool) error {
	if who := alarmed(facts, alarmCorrupt); len(who) > 0 {
		return hint.With(fmt.Errorf("%w: %w on %s", ErrUnhealthy, ErrCorrupt, strings.Join(names(facts, who), ", ")),
			"see what to do with: etcdkit health")
	}
	if who := alarmed(facts, alarmNoSpace); len(who) > 0 && !noSpace {
		return hint.With(fmt.Errorf("%w: alarm NOSPACE is armed on %s", ErrUnhealthy, strings.Join(names(facts, who), ", ")),
			"this takes the cluster out of it, defragmentations included: %s", recoverNext)
	}
	return nil
}

// staysArmed is what is left to do when a member with a CORRUPT alarm is gone.
func staysArmed(facts Facts, id uint64) string {
	if !slices.Contains(alarmed(facts, alarmCorrupt), id) {
		return ""
	}
	return "; alarm CORRUPT of " + output.ID(id) + " stays armed, and writes are refused, until: " + goneNext
}

// ReplaceCommand is how the member is replaced by one on the same machine. It
// is named by its id, which stays unlike when the new one takes the name.
func ReplaceCommand(m Member) string {
	name := m.Name
	if name == "" {
		name = "NAME"
	}
	return "etcdkit member replace " + m.IDHex + " --name " + name + " --peer-urls " + strings.Join(m.PeerURLs, ",")
}
