package ctl

import (
	"encoding/json"
	"fmt"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
)

// hexMembers is the answer of a member command with --hex -w json: ids are
// strings.
type hexMembers struct {
	header  *pb.ResponseHeader
	member  *pb.Member // of member add
	members []*pb.Member
}

type hexHeader struct {
	ClusterID string `json:"cluster_id"`
	MemberID  string `json:"member_id"`
	Revision  int64  `json:"revision,omitempty"`
	RaftTerm  uint64 `json:"raft_term,omitempty"`
}

type hexMember struct {
	ID         string   `json:"ID"`
	Name       string   `json:"name,omitempty"`
	PeerURLs   []string `json:"peerURLs,omitempty"`
	ClientURLs []string `json:"clientURLs,omitempty"`
	IsLearner  bool     `json:"isLearner,omitempty"`
}

func newHexMember(m *pb.Member) hexMember {
	return hexMember{fmt.Sprintf("%x", m.GetID()), m.GetName(), m.GetPeerURLs(), m.GetClientURLs(), m.GetIsLearner()}
}

// MarshalJSON implements json.Marshaler.
func (h hexMembers) MarshalJSON() ([]byte, error) {
	out := object{{"header", hexHeader{
		fmt.Sprintf("%x", h.header.GetClusterId()), fmt.Sprintf("%x", h.header.GetMemberId()), h.header.GetRevision(), h.header.GetRaftTerm(),
	}}}
	if h.member != nil {
		out = append(out, field{"member", newHexMember(h.member)})
	}
	members := make([]hexMember, len(h.members))
	for i, m := range h.members {
		members[i] = newHexMember(m)
	}
	return json.Marshal(append(out, field{"members", members}))
}
