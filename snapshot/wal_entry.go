package snapshot

import (
	"fmt"
	"strings"

	"github.com/coreos/go-semver/semver"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
)

// v2Request is a request of etcd's second API, by which members of 3.5 publish
// themselves and the version of the cluster. etcd 3.7 no longer knows it.
type v2Request struct {
	index       uint64
	path, value string
}

// Fields of such a request.
const (
	v2Path  = 3
	v2Value = 4
)

// decodeV2 decodes an entry that is no request of the third API.
func decodeV2(e *raftpb.Entry) (r v2Request, err error) {
	r.index = e.GetIndex()
	for b := e.GetData(); len(b) > 0; {
		num, typ, n := protowire.ConsumeField(b)
		if n < 0 {
			return r, fmt.Errorf("entry %d cannot be decoded", r.index)
		}
		if typ == protowire.BytesType {
			_, _, tag := protowire.ConsumeTag(b)
			value, _ := protowire.ConsumeBytes(b[tag:])
			switch num {
			case v2Path:
				r.path = string(value)
			case v2Value:
				r.value = string(value)
			}
		}
		b = b[n:]
	}
	if !strings.HasPrefix(r.path, "/") {
		return r, fmt.Errorf("entry %d cannot be decoded", r.index)
	}
	return r, nil
}

// clusterVersion returns the version of the cluster that a request sets, nil if
// it is about something else.
func (r v2Request) clusterVersion() (*semver.Version, error) {
	if r.path != "/0/version" {
		return nil, nil
	}
	v, err := semver.NewVersion(r.value)
	if err != nil {
		return nil, fmt.Errorf("entry %d sets the cluster version %q: %w", r.index, r.value, err)
	}
	return v, nil
}

// clusterVersionOf returns the version of the cluster that an entry sets, nil if
// it is about something else.
func clusterVersionOf(e *raftpb.Entry) (*semver.Version, error) {
	if e.GetType() != raftpb.EntryNormal || len(e.GetData()) == 0 {
		return nil, nil
	}
	var request pb.InternalRaftRequest
	if proto.Unmarshal(e.GetData(), &request) != nil {
		r, err := decodeV2(e)
		if err != nil {
			return nil, err
		}
		return r.clusterVersion()
	}
	if request.ClusterVersionSet == nil {
		return nil, nil
	}
	v, err := semver.NewVersion(request.ClusterVersionSet.GetVer())
	if err != nil {
		return nil, fmt.Errorf("entry %d sets the cluster version %q: %w", e.GetIndex(), request.ClusterVersionSet.GetVer(), err)
	}
	return v, nil
}
