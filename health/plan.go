package health

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/etcdkit/etcdkit/internal/hint"
	"github.com/etcdkit/etcdkit/internal/output"
)

// ErrRefused is an action that was not taken because it could harm the
// cluster.
var ErrRefused = errors.New("refused")

// ErrNoMember is a name that no member has.
var ErrNoMember = errors.New("no member")

// pausePerGiB is how long a member is taken to stand still for each GiB in
// use: about 100 MiB/s, what etcd's documentation reports for an SSD. The
// forecast is an order of magnitude, not a promise.
const pausePerGiB = 10 * time.Second

// DefragOptions says which members are worth a defragmentation, and how to
// go about it. Zero limits mean their defaults.
type DefragOptions struct {
	MinFragmentation float64 // share of the file without data; 0.45
	MinFree          int64   // bytes without data; 100 MiB
	MinQuotaUsed     float64 // share of the quota from which a tenth is worth it; 0.8
	All              bool    // every member, worth it or not
	Members          []string
	SkipLeader       bool
	DiskFree         map[string]int64 // free bytes beside a member's database, by name or id
	MustExist        []string         // other names that must be members': a typo would leave a disk unchecked
	Force            bool             // go on where quorum is at risk

	Pause           time.Duration // between two members
	GateTimeout     time.Duration // for the cluster to be well again; 2 min
	StallTimeout    time.Duration // without a sign of life during a defragmentation; 30 s
	ContinueOnError bool
	NoSpace         bool // an armed NOSPACE is no reason to stop
	Compact         bool // first, at the newest revision less Keep
	Keep            int64
}

const (
	defaultMinFragmentation = 0.45
	defaultMinFree          = 100 << 20
	defaultMinQuotaUsed     = 0.8
	worthOfQuota            = 0.1 // of the file, where the quota is nearly used up
)

// What an Action can be.
const (
	actionSkip    = "skip"
	actionDefrag  = "defrag"
	actionMove    = "move-leader"
	actionCompact = "compact"
)

// Action is one planned step.
type Action struct {
	Action       string  `json:"action"` // compact, defrag, move-leader, skip, ...
	Member       string  `json:"member"`
	MemberIDHex  string  `json:"memberIDHex,omitempty"`
	Detail       string  `json:"detail"` // why
	ReclaimBytes int64   `json:"reclaimBytes,omitempty"`
	PauseSeconds float64 `json:"pauseSeconds,omitempty"` // forecast
	NeedBytes    int64   `json:"diskNeededBytes,omitempty"`
	Disk         string  `json:"disk,omitempty"` // enough, too little, not checked

	id       uint64
	endpoint string
}

// Step is one action that was tried.
type Step struct {
	Action      string  `json:"action"`
	Member      string  `json:"member"`
	MemberIDHex string  `json:"memberIDHex,omitempty"`
	OK          bool    `json:"ok"`
	Detail      string  `json:"detail"`
	TookSeconds float64 `json:"tookSeconds"`
}

// PlanDefrag says what a defragmentation would do, in order: members that are
// not worth it or left out, then followers, then the leader. Learners are
// left out, for they serve nobody. The error is ErrRefused where going on
// could cost quorum or fill a disk, ErrUnhealthy while an alarm is armed, and
// ErrUnknown where so few answer that nothing can be said of the rest; the plan
// is whole anyway.
func PlanDefrag(facts Facts, opts DefragOptions) ([]Action, error) {
	choice, err := choose(facts.Members, opts)
	if err != nil {
		return nil, err
	}
	leader := leaderID(facts.Members)
	var skipped, followers, last []Action
	var refusals []error
	for _, m := range facts.Members {
		a, wanted := judgeWorth(m, m.ID == leader, opts, choice)
		if !wanted {
			skipped = append(skipped, a)
			continue
		}
		if a.Disk == diskTooLittle {
			refusals = append(refusals, hint.With(fmt.Errorf("%w: the copy of %s needs %s, only %s are free beside it",
				ErrRefused, a.Member, output.Bytes(a.NeedBytes), output.Bytes(choice.free[m.ID])),
				"make room on that disk, or choose the other members with --members"))
		}
		if m.ID == leader {
			last = append(last, a)
		} else {
			followers = append(followers, a)
		}
	}
	if err := unfit(facts, opts.NoSpace); err != nil {
		refusals = append(refusals, err)
	}
	voting := VotingOf(facts.Members)
	if len(last) > 0 && voting.Voters > 1 {
		last = slices.Insert(last, 0, Action{
			Action: actionMove, Member: last[0].Member, MemberIDHex: last[0].MemberIDHex, id: last[0].id,
			Detail: "a leader that stands still stops every write",
		})
	}
	plan := slices.Concat(skipped, followers, last)
	work := len(followers) + len(last)
	if work == 0 && !voting.Serves() {
		refusals = append(refusals, hint.With(fmt.Errorf("%w: %s", ErrUnknown, voting), "see what is wrong with: etcdkit health"))
	}
	if work > 0 && voting.Alive < voting.Voters && voting.CanLose() == 0 && !opts.Force {
		refusals = append(refusals, hint.With(fmt.Errorf("%w: %s, so none may stand still", ErrRefused, voting),
			"%s; etcdkit health says why they are not alive; --force goes on without them", aliveFirst(facts)))
	}
	return plan, errors.Join(refusals...)
}

// chosen is which members the options mean, by id.
type chosen struct {
	members map[uint64]bool // nil means all
	free    map[uint64]int64
}

// choose finds the members that the options name. A typo, or a name that fits
// several, must not look like a member that needs nothing.
func choose(members []Member, opts DefragOptions) (chosen, error) {
	var c chosen
	for _, name := range opts.Members {
		m, err := Resolve(members, name)
		if err != nil {
			return c, err
		}
		if c.members == nil {
			c.members = map[uint64]bool{}
		}
		c.members[m.ID] = true
	}
	for _, name := range opts.MustExist {
		if _, err := Resolve(members, name); err != nil {
			return c, err
		}
	}
	c.free = map[uint64]int64{}
	for name, free := range opts.DiskFree {
		if m, err := Resolve(members, name); err == nil { // what this host adds by itself may be nobody's
			c.free[m.ID] = free
		}
	}
	return c, nil
}

// judgeWorth decides on one member.
func judgeWorth(m Member, leads bool, opts DefragOptions, choice chosen) (Action, bool) {
	a := Action{Action: actionSkip, Member: m.Label(), MemberIDHex: m.IDHex, id: m.ID, endpoint: m.Endpoint}
	switch {
	case choice.members != nil && !choice.members[m.ID]:
		a.Detail = "not chosen"
	case m.Status == nil && m.Error != "":
		a.Detail = "does not answer: " + m.Error
	case m.Status == nil:
		a.Detail = "does not answer"
	case !m.Listed:
		a.Detail = "not in the member list"
	case m.Learner:
		a.Detail = "a learner"
	case leads && opts.SkipLeader:
		a.Detail = "the leader, left out on demand"
	default:
		why, worth := worth(*m.Status, opts)
		a.Detail = why
		if !worth && !opts.All && !choice.members[m.ID] {
			return a, false
		}
		a.Action = actionDefrag
		a.ReclaimBytes = max(0, m.Status.SizeBytes-m.Status.InUseBytes)
		a.PauseSeconds = forecast(m.Status.InUseBytes).Seconds()
		a.NeedBytes = m.Status.InUseBytes
		a.Disk = choice.diskRoom(m, a.NeedBytes)
		return a, true
	}
	return a, false
}

func worth(s Status, opts DefragOptions) (string, bool) {
	minFragmentation, minFree, minQuota := opts.MinFragmentation, opts.MinFree, opts.MinQuotaUsed
	if minFragmentation == 0 {
		minFragmentation = defaultMinFragmentation
	}
	if minFree == 0 {
		minFree = defaultMinFree
	}
	if minQuota == 0 {
		minQuota = defaultMinQuotaUsed
	}
	free := s.SizeBytes - s.InUseBytes
	facts := fmt.Sprintf("%s of %s in use, %.0f%% fragmented", output.Bytes(s.InUseBytes), output.Bytes(s.SizeBytes), 100*s.Fragmented())
	if used := s.QuotaUsed(); used >= minQuota && s.Fragmented() >= worthOfQuota {
		return fmt.Sprintf("%s, %.0f%% of the quota used", facts, 100*used), true
	}
	return facts, s.Fragmented() >= minFragmentation && free >= minFree
}

// The answers of diskRoom.
const (
	diskEnough     = "enough"
	diskTooLittle  = "too little"
	diskNotChecked = "not checked"
)

// diskRoom tells whether the copy that a defragmentation writes fits beside
// the database (etcd-io/etcd#15001).
func (c chosen) diskRoom(m Member, need int64) string {
	switch have, known := c.free[m.ID]; {
	case !known:
		return diskNotChecked
	case have < need:
		return diskTooLittle
	default:
		return diskEnough
	}
}

func forecast(inUse int64) time.Duration {
	return time.Duration(float64(inUse) / (1 << 30) * float64(pausePerGiB))
}
