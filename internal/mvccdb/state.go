package mvccdb

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"go.etcd.io/etcd/api/v3/authpb"
	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/server/v3/lease/leasepb"
)

// NeverCompacted is the compact revision of a keyspace that was not compacted
// yet.
const NeverCompacted = -1

// State is what the small buckets say about the member that wrote the file.
type State struct {
	ConsistentIndex uint64 // last applied entry of the log
	Term            uint64
	StorageVersion  string // "" before etcd 3.6
	ClusterVersion  string

	ScheduledCompact int64 // a compaction begun, or NeverCompacted
	FinishedCompact  int64 // the last one finished, or NeverCompacted

	Members        []Member
	RemovedMembers []uint64
	Alarms         []Alarm
	AuthEnabled    bool
	AuthRevision   uint64
	Users, Roles   []string
	Leases         int

	Damage []*Damage // records that cannot be decoded
}

// CompactRevision returns the revision up to which history is gone, or about
// to go, or NeverCompacted.
func (s *State) CompactRevision() int64 { return max(s.ScheduledCompact, s.FinishedCompact) }

// Member is a member of the cluster as the file knows it.
type Member struct {
	ID         uint64
	Name       string
	PeerURLs   []string
	ClientURLs []string
	Learner    bool
}

// Alarm is an alarm that was raised when the file was written.
type Alarm struct {
	MemberID uint64
	Type     string
}

// State reads the small buckets.
func (db *DB) State(ctx context.Context) (*State, error) {
	s := &State{ScheduledCompact: NeverCompacted, FinishedCompact: NeverCompacted}
	readers := map[string]func(Element) error{
		MetaBucket: s.readMeta, ClusterBucket: s.readCluster,
		MembersBucket: s.readMember, removedBucket: s.readRemoved,
		AlarmBucket: s.readAlarm,
		AuthBucket:  s.readAuth, UsersBucket: s.readUser, RolesBucket: s.readRole,
		LeaseBucket: s.readLease,
	}
	err := db.small(ctx, slices.Sorted(maps.Keys(readers)), func(bucket string, e Element) error {
		if err := readers[bucket](e); err != nil {
			s.Damage = append(s.Damage, &Damage{Page: e.Page, Offset: e.Offset, Bucket: bucket, What: err.Error()})
		}
		return nil
	})
	if s.FinishedCompact > s.ScheduledCompact {
		s.Damage = append(s.Damage, &Damage{Page: NoPage, Bucket: MetaBucket, What: fmt.Sprintf(
			"a compaction at revision %d is finished, and the last one begun was at %d", s.FinishedCompact, s.ScheduledCompact)})
	}
	return s, err
}

func (s *State) readMeta(e Element) (err error) {
	switch string(e.RawKey) {
	case "consistent_index":
		s.ConsistentIndex, err = numberOf(e)
	case "term":
		s.Term, err = numberOf(e)
	case "storageVersion":
		s.StorageVersion = string(e.RawValue)
		err = checkVersion(e)
	case "confState":
		err = checkConfState(e)
	case "scheduledCompactRev":
		s.ScheduledCompact, err = compactRevision(e)
	case "finishedCompactRev":
		s.FinishedCompact, err = compactRevision(e)
	default:
		err = checkName(e, metaNames())
	}
	return err
}

// checkConfState fails where raft would not find who votes.
func checkConfState(e Element) error {
	var state struct {
		Voters []uint64 `json:"voters"`
	}
	if err := json.Unmarshal(e.RawValue, &state); err != nil {
		return fmt.Errorf("%q: %w", e.RawKey, err)
	}
	if len(state.Voters) == 0 {
		return fmt.Errorf("%q names no voter", e.RawKey)
	}
	return nil
}

// numberOf reads a record that is a number.
func numberOf(e Element) (uint64, error) {
	n, err := bigEndian(e.RawValue)
	if err != nil {
		return 0, fmt.Errorf("%q %w", e.RawKey, err)
	}
	return n, nil
}

func bigEndian(b []byte) (uint64, error) {
	if len(b) != 8 {
		return 0, fmt.Errorf("has %d bytes, want 8", len(b))
	}
	return binary.BigEndian.Uint64(b), nil
}

func compactRevision(e Element) (int64, error) {
	rev, tombstone, err := ParseRevision(e.RawValue)
	if err == nil && (tombstone || rev.Sub != 0) {
		err = fmt.Errorf("%s is not the revision of a compaction", show(e.RawValue))
	}
	if err != nil {
		return NeverCompacted, fmt.Errorf("%q: %w", e.RawKey, err)
	}
	return rev.Main, nil
}

func (s *State) readCluster(e Element) error {
	switch string(e.RawKey) {
	case "clusterVersion":
		s.ClusterVersion = string(e.RawValue)
		return checkVersion(e)
	case "downgrade":
		if !json.Valid(e.RawValue) {
			return fmt.Errorf("%q is not JSON", e.RawKey)
		}
		return nil
	}
	return checkName(e, clusterNames())
}

func (s *State) readMember(e Element) error {
	id, err := memberID(e.RawKey)
	if err != nil {
		return err
	}
	var m struct {
		ID         uint64   `json:"id"`
		PeerURLs   []string `json:"peerURLs"`
		Learner    bool     `json:"isLearner"`
		Name       string   `json:"name"`
		ClientURLs []string `json:"clientURLs"`
	}
	if err := json.Unmarshal(e.RawValue, &m); err != nil {
		return fmt.Errorf("member %x: %w", id, err)
	}
	if m.ID != id {
		return fmt.Errorf("member %x has the id %x in its record", id, m.ID)
	}
	s.Members = append(s.Members, Member{ID: id, Name: m.Name, PeerURLs: m.PeerURLs, ClientURLs: m.ClientURLs, Learner: m.Learner})
	slices.SortFunc(s.Members, func(a, b Member) int { return cmp.Compare(a.ID, b.ID) })
	return nil
}

func (s *State) readRemoved(e Element) error {
	id, err := memberID(e.RawKey)
	if err == nil {
		s.RemovedMembers = append(s.RemovedMembers, id)
	}
	return err
}

func memberID(key []byte) (id uint64, err error) {
	if _, err := fmt.Sscanf(string(key), "%x", &id); err != nil || fmt.Sprintf("%x", id) != string(key) {
		return 0, fmt.Errorf("%q is no member id", key)
	}
	return id, nil
}

func (s *State) readAlarm(e Element) error {
	var a etcdserverpb.AlarmMember
	err := decodeExact(e.RawKey, &a)
	if _, known := etcdserverpb.AlarmType_name[int32(a.GetAlarm())]; err == nil && !known {
		err = fmt.Errorf("its type %d is unknown", a.GetAlarm())
	}
	if err != nil {
		return fmt.Errorf("alarm: %w", err)
	}
	s.Alarms = append(s.Alarms, Alarm{MemberID: a.GetMemberID(), Type: a.GetAlarm().String()})
	return nil
}

func (s *State) readLease(e Element) error {
	s.Leases++
	id, err := bigEndian(e.RawKey)
	if err != nil {
		return fmt.Errorf("lease: id %w", err)
	}
	var l leasepb.Lease
	switch err := decodeExact(e.RawValue, &l); {
	case err != nil:
		return fmt.Errorf("lease %x: %w", id, err)
	case l.GetID() != int64(id):
		return fmt.Errorf("lease %x has the id %x in its record", id, uint64(l.GetID()))
	case l.GetTTL() < 0 || l.GetTTL() > maxLeaseTTL:
		return fmt.Errorf("lease %x has a time to live of %d s", id, l.GetTTL())
	}
	return nil
}

// maxLeaseTTL is the longest time that etcd grants a lease, in seconds.
const maxLeaseTTL = 9_000_000_000

func (s *State) readAuth(e Element) (err error) {
	switch string(e.RawKey) {
	case "authEnabled":
		if len(e.RawValue) != 1 || e.RawValue[0] > 1 {
			return fmt.Errorf("%q is %x, want 00 or 01", e.RawKey, e.RawValue)
		}
		s.AuthEnabled = e.RawValue[0] == 1
	case "authRevision":
		s.AuthRevision, err = numberOf(e)
	default:
		err = checkName(e, authNames())
	}
	return err
}

func (s *State) readUser(e Element) error {
	var u authpb.User
	err := decodeExact(e.RawValue, &u)
	if err == nil && !bytes.Equal(u.GetName(), e.RawKey) {
		err = errOtherName
	}
	if err != nil {
		return fmt.Errorf("user %q: %w", e.RawKey, err)
	}
	s.Users = append(s.Users, string(e.RawKey))
	return nil
}

func (s *State) readRole(e Element) error {
	var r authpb.Role
	err := decodeExact(e.RawValue, &r)
	if err == nil && !bytes.Equal(r.GetName(), e.RawKey) {
		err = errOtherName
	}
	if err != nil {
		return fmt.Errorf("role %q: %w", e.RawKey, err)
	}
	s.Roles = append(s.Roles, string(e.RawKey))
	return nil
}

// errOtherName tells of a user or role whose record is another one's.
var errOtherName = errors.New("its record has another name")
