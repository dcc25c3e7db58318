package mvccdb

import (
	"cmp"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"go.etcd.io/etcd/api/v3/authpb"
	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/protobuf/proto"
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
		MembersBucket: s.readMember, "members_removed": s.readRemoved,
		AlarmBucket: s.readAlarm,
		AuthBucket:  s.readAuth, UsersBucket: s.readUser, RolesBucket: s.readRole,
		LeaseBucket: func(Element) error { s.Leases++; return nil },
	}
	err := db.small(ctx, slices.Sorted(maps.Keys(readers)), func(bucket string, e Element) error {
		if err := readers[bucket](e); err != nil {
			s.Damage = append(s.Damage, &Damage{Page: e.Page, Offset: e.Offset, Bucket: bucket, What: err.Error()})
		}
		return nil
	})
	return s, err
}

func (s *State) readMeta(e Element) (err error) {
	switch string(e.RawKey) {
	case "consistent_index":
		s.ConsistentIndex, err = bigEndian(e)
	case "term":
		s.Term, err = bigEndian(e)
	case "storageVersion":
		s.StorageVersion = string(e.RawValue)
	case "scheduledCompactRev":
		s.ScheduledCompact, err = compactRevision(e)
	case "finishedCompactRev":
		s.FinishedCompact, err = compactRevision(e)
	}
	return err
}

func bigEndian(e Element) (uint64, error) {
	if len(e.RawValue) != 8 {
		return 0, fmt.Errorf("%q has %d bytes, want 8", e.RawKey, len(e.RawValue))
	}
	return binary.BigEndian.Uint64(e.RawValue), nil
}

func compactRevision(e Element) (int64, error) {
	rev, _, err := ParseRevision(e.RawValue)
	if err != nil {
		return NeverCompacted, fmt.Errorf("%q: %w", e.RawKey, err)
	}
	return rev.Main, nil
}

func (s *State) readCluster(e Element) error {
	if string(e.RawKey) == "clusterVersion" {
		s.ClusterVersion = string(e.RawValue)
	}
	return nil
}

func (s *State) readMember(e Element) error {
	id, err := memberID(e.RawKey)
	if err != nil {
		return err
	}
	var m struct {
		PeerURLs   []string `json:"peerURLs"`
		Learner    bool     `json:"isLearner"`
		Name       string   `json:"name"`
		ClientURLs []string `json:"clientURLs"`
	}
	if err := json.Unmarshal(e.RawValue, &m); err != nil {
		return fmt.Errorf("member %x: %w", id, err)
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
	if err := proto.Unmarshal(e.RawKey, &a); err != nil {
		return fmt.Errorf("alarm: %w", err)
	}
	s.Alarms = append(s.Alarms, Alarm{MemberID: a.GetMemberID(), Type: a.GetAlarm().String()})
	return nil
}

func (s *State) readAuth(e Element) (err error) {
	switch string(e.RawKey) {
	case "authEnabled":
		s.AuthEnabled = len(e.RawValue) == 1 && e.RawValue[0] == 1
	case "authRevision":
		s.AuthRevision, err = bigEndian(e)
	}
	return err
}

func (s *State) readUser(e Element) error {
	var u authpb.User
	if err := proto.Unmarshal(e.RawValue, &u); err != nil {
		return fmt.Errorf("user %q: %w", e.RawKey, err)
	}
	s.Users = append(s.Users, string(e.RawKey))
	return nil
}

func (s *State) readRole(e Element) error {
	var r authpb.Role
	if err := proto.Unmarshal(e.RawValue, &r); err != nil {
		return fmt.Errorf("role %q: %w", e.RawKey, err)
	}
	s.Roles = append(s.Roles, string(e.RawKey))
	return nil
}
