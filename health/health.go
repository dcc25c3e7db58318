// Package health judges an etcd cluster and brings it back: one verdict from
// the evidence of every member, defragmentation in a safe order, recovery from
// a full quota, and changes of membership that never lose quorum.
//
// Gathering talks to servers, through interfaces declared here; judging is a
// pure function of what was gathered. No check passes without evidence: what
// could not be seen is listed as a gap, and a gap in required evidence makes
// the verdict unknown.
package health

import (
	"cmp"
	"encoding/json"
	"errors"
	"time"

	"github.com/etcdkit/etcdkit/internal/output"
)

// Sentinels for callers that choose an exit code.
var (
	// ErrUnhealthy is the verdict unhealthy, or degraded where that is not
	// good enough.
	ErrUnhealthy = errors.New("the cluster is not healthy")
	// ErrUnknown means that required evidence is missing.
	ErrUnknown = errors.New("the cluster's health cannot be told")
)

// Verdict is the judgement on a whole cluster.
type Verdict string

// The verdicts, from best to worst known.
const (
	Healthy   Verdict = "healthy"
	Degraded  Verdict = "degraded"
	Unhealthy Verdict = "unhealthy"
	Unknown   Verdict = "unknown"
)

// Severity says what a problem does to the verdict.
type Severity string

// A critical problem makes a cluster unhealthy, a warning makes it degraded,
// an information changes nothing.
const (
	Critical Severity = "critical"
	Warning  Severity = "warning"
	Info     Severity = "info"
)

// Kind names a kind of evidence.
type Kind string

// The checks. Reach, leader, quota and alarms are required of every member
// that answers, the others only on demand.
const (
	KindReach   Kind = "reach"
	KindLeader  Kind = "leader"
	KindQuota   Kind = "quota"
	KindAlarms  Kind = "alarms"
	KindQuorum  Kind = "quorum"
	KindReads   Kind = "reads"
	KindLag     Kind = "lag"
	KindVersion Kind = "version"
	KindSpace   Kind = "space"
	KindCerts   Kind = "certs"
	KindMetrics Kind = "metrics"
	KindHash    Kind = "hash"
	KindMembers Kind = "members"
)

// Problem is one finding, with what shows it and what to do next.
type Problem struct {
	Severity Severity `json:"severity"`
	Member   string   `json:"member"` // name, or endpoint where no name is known; "" for the cluster
	Check    Kind     `json:"check"`
	Evidence string   `json:"evidence"`
	Next     string   `json:"next"` // a command to run or a thing to do
}

// Gap is evidence that could not be had.
type Gap struct {
	Member   string `json:"member"`
	Check    Kind   `json:"check"`
	Reason   string `json:"reason"`
	Required bool   `json:"required"`
}

// Report is the judged cluster.
type Report struct {
	Verdict  Verdict   `json:"verdict"`
	Problems []Problem `json:"problems"`
	Upgrade  *Upgrade  `json:"upgrade,omitempty"` // of JudgeUpgrade
	Facts
}

// Facts is what was seen, before any judgement.
type Facts struct {
	Time    time.Time `json:"time"`
	Cluster Cluster   `json:"cluster"`
	Members []Member  `json:"members"`
	Gaps    []Gap     `json:"gaps"`
}

// Cluster is what the members have in common.
type Cluster struct {
	ID        uint64  `json:"id"`
	IDHex     string  `json:"idHex"`
	Leader    string  `json:"leader"` // its name, "" without one
	Voters    int     `json:"voters"`
	Learners  int     `json:"learners"`
	Answering int     `json:"answering"` // voters that answered
	Alive     int     `json:"alive"`     // voters that serve a linearizable read and know the leader
	Quorum    int     `json:"quorum"`
	CanLose   int     `json:"canLose"` // voters that may still fail
	Hash      *Hashes `json:"hash,omitempty"`
}

// Member is one member, or an endpoint that belongs to no known member.
type Member struct {
	Name       string   `json:"name"`
	ID         uint64   `json:"id"`
	IDHex      string   `json:"idHex"`
	Endpoint   string   `json:"endpoint"`
	PeerURLs   []string `json:"peerURLs"`
	ClientURLs []string `json:"clientURLs"`
	Listed     bool     `json:"listed"` // in the cluster's member list
	Learner    bool     `json:"learner"`
	Reachable  bool     `json:"reachable"`
	Error      string   `json:"error,omitempty"`                  // why it is not, or why its status was refused
	FromList   bool     `json:"endpointFromMemberList,omitempty"` // the endpoint was not given, the member advertises it
	// OtherAnswers are those that came from its URLs and not from itself.
	OtherAnswers []OtherAnswer `json:"otherAnswers,omitempty"`

	Status  *Status       `json:"status"`            // nil without an answer
	Reads   *Reads        `json:"reads,omitempty"`   // nil on learners
	Metrics *Metrics      `json:"metrics,omitempty"` // nil without /metrics
	Certs   []Certificate `json:"certificates,omitempty"`
	// Replication is how far a learner has come; nil on voters.
	Replication *Replication `json:"replication,omitempty"`

	// identified is true once an answer carried its own id.
	identified bool

	label string // instead of the name, where several have it
	hint  string // what helps against Error, where that is known
}

// Label is what people call the member.
func (m Member) Label() string {
	if m.label != "" {
		return m.label
	}
	if m.Name != "" {
		return m.Name
	}
	if m.Endpoint != "" {
		return m.Endpoint
	}
	return m.IDHex
}

// Named is the member as a plan or a question names it: a name is only a way to
// find it, its id tells which one is meant.
func (m Member) Named() string {
	switch {
	case m.IDHex == "":
		return m.Label()
	case m.Name == "":
		return m.IDHex
	default:
		return m.Name + " (" + m.IDHex + ")"
	}
}

// OtherAnswer is an answer at a member's URL that another member gave.
type OtherAnswer struct {
	URL          string `json:"url"`
	MemberID     uint64 `json:"memberID"`
	MemberIDHex  string `json:"memberIDHex"`
	ClusterIDHex string `json:"clusterIDHex"`
}

// MarshalJSON implements json.Marshaler: whether the member is alive is shown
// with what tells it.
func (m Member) MarshalJSON() ([]byte, error) {
	type plain Member
	life := m.Life()
	return json.Marshal(struct {
		plain
		Alive         bool   `json:"alive"`
		AliveEvidence string `json:"aliveEvidence"`
	}{plain(m), life.Alive, life.Evidence})
}

// next is what helps a member that does not answer.
func (m Member) next() string { return cmp.Or(m.hint, "look at the server's log on that host") }

// Status is a member's view of itself and of its leader.
type Status struct {
	Version        string   `json:"version"`
	StorageVersion string   `json:"storageVersion,omitempty"`
	LeaderID       uint64   `json:"leaderID"` // 0 without one
	LeaderIDHex    string   `json:"leaderIDHex"`
	Term           uint64   `json:"raftTerm"`
	Index          uint64   `json:"raftIndex"`
	Applied        uint64   `json:"raftAppliedIndex"`
	Revision       int64    `json:"revision"`
	Learner        bool     `json:"learner"`
	SizeBytes      int64    `json:"dbSizeBytes"`
	InUseBytes     int64    `json:"dbInUseBytes"`
	QuotaBytes     int64    `json:"quotaBytes"` // 0 where not known, negative where switched off
	Alarms         []Alarm  `json:"alarms"`
	Errors         []string `json:"errors"` // what the member says beside alarms

	DowngradeTarget string `json:"downgradeTarget,omitempty"` // the version of an enabled downgrade
}

// Fragmented is the share of the file that holds no data.
func (s Status) Fragmented() float64 {
	if s.SizeBytes <= 0 {
		return 0
	}
	return float64(s.SizeBytes-s.InUseBytes) / float64(s.SizeBytes)
}

// QuotaUsed is the share of the quota that the file takes, 0 where the quota
// is not known or switched off.
func (s Status) QuotaUsed() float64 {
	if s.QuotaBytes <= 0 {
		return 0
	}
	return float64(s.SizeBytes) / float64(s.QuotaBytes)
}

// The alarms that etcd has.
const (
	alarmNoSpace = "NOSPACE"
	alarmCorrupt = "CORRUPT"
)

// Alarm is one alarm that a member has been told of.
type Alarm struct {
	Kind     string `json:"kind"` // NOSPACE, CORRUPT
	MemberID uint64 `json:"memberID"`
}

// MarshalJSON implements json.Marshaler: the id stands there in hexadecimal
// too, for jq rounds the number.
func (a Alarm) MarshalJSON() ([]byte, error) {
	type plain Alarm
	return json.Marshal(struct {
		plain
		MemberIDHex string `json:"memberIDHex"`
	}{plain(a), output.ID(a.MemberID)})
}

// Reads is the outcome of several linearizable reads through a member.
type Reads struct {
	Count         int     `json:"count"` // that succeeded
	MinSeconds    float64 `json:"minSeconds"`
	MedianSeconds float64 `json:"medianSeconds"`
	Error         string  `json:"error,omitempty"` // of the last read that failed
}
