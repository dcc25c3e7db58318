package health

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/etcdkit/etcdkit/internal/hint"
	"github.com/etcdkit/etcdkit/internal/output"
)

// ErrTwoClusters means that the endpoints given belong to more than one
// cluster.
var ErrTwoClusters = errors.New("the endpoints belong to more than one cluster")

// OtherMemberError is an answer of another member than the one that was asked.
// It says nothing about the member that was asked.
type OtherMemberError struct {
	URL             string
	Member, Cluster uint64 // who answered
}

func (e *OtherMemberError) Error() string {
	return fmt.Sprintf("%s was answered by member %s of cluster %s", e.URL, output.ID(e.Member), output.ID(e.Cluster))
}

// identity is the member that an answer must come from. The zero value is
// anybody.
type identity struct{ member, cluster uint64 }

// check compares who answered with who was asked. A zero id in the identity
// accepts any. A list may come from a proxy, which has no member id.
func (i identity) check(url string, h *pb.ResponseHeader) error {
	other := i.member != 0 && h.GetMemberId() != i.member || i.cluster != 0 && h.GetClusterId() != i.cluster
	if other {
		return &OtherMemberError{URL: url, Member: h.GetMemberId(), Cluster: h.GetClusterId()}
	}
	return nil
}

// identifiedClient accepts answers only from one member. Behind one URL there
// may be several: a load balancer, a service, a copied setting.
type identifiedClient struct {
	Client
	url string
	who identity
}

func (c *identifiedClient) Get(ctx context.Context, key string, opts ...clientv3.OpOption) (*clientv3.GetResponse, error) {
	r, err := c.Client.Get(ctx, key, opts...)
	if err == nil {
		err = c.who.check(c.url, r.Header)
	}
	if err != nil {
		return nil, err
	}
	return r, nil
}

func (c *identifiedClient) MemberList(ctx context.Context, opts ...clientv3.OpOption) (*clientv3.MemberListResponse, error) {
	r, err := c.Client.MemberList(ctx, opts...)
	if err == nil {
		err = c.who.check(c.url, r.Header)
	}
	if err != nil {
		return nil, err
	}
	return r, nil
}

func (c *identifiedClient) Status(ctx context.Context, endpoint string) (*clientv3.StatusResponse, error) {
	r, err := c.Client.Status(ctx, endpoint)
	if err == nil {
		err = c.who.check(c.url, r.Header)
	}
	if err != nil {
		return nil, err
	}
	return r, nil
}

func (c *identifiedClient) HashKV(ctx context.Context, endpoint string, rev int64) (*clientv3.HashKVResponse, error) {
	r, err := c.Client.HashKV(ctx, endpoint, rev)
	if err == nil {
		err = c.who.check(c.url, r.Header)
	}
	if err != nil {
		return nil, err
	}
	return r, nil
}

func (c *identifiedClient) AlarmList(ctx context.Context) (*clientv3.AlarmResponse, error) {
	r, err := c.Client.AlarmList(ctx)
	if err == nil {
		err = c.who.check(c.url, r.Header)
	}
	if err != nil {
		return nil, err
	}
	return r, nil
}

// identifiedOperator is an Operator whose reads are checked likewise.
type identifiedOperator struct {
	Operator
	reads *identifiedClient
}

func (o *identifiedOperator) Get(ctx context.Context, key string, opts ...clientv3.OpOption) (*clientv3.GetResponse, error) {
	return o.reads.Get(ctx, key, opts...)
}

func (o *identifiedOperator) MemberList(ctx context.Context, opts ...clientv3.OpOption) (*clientv3.MemberListResponse, error) {
	return o.reads.MemberList(ctx, opts...)
}

func (o *identifiedOperator) Status(ctx context.Context, endpoint string) (*clientv3.StatusResponse, error) {
	return o.reads.Status(ctx, endpoint)
}

// operate opens a client that changes something at a member, after it made sure
// that this member answers there: answers to changes name nobody.
func operate(ctx context.Context, tools Tools, m Member, cluster uint64) (Operator, error) {
	client, err := tools.Operate(ctx, m.Endpoint)
	if err != nil {
		return nil, err
	}
	reads := &identifiedClient{client, m.Endpoint, identity{m.ID, cluster}}
	// Changes outlive a signal, so this look does.
	if _, err := statusWithin(context.WithoutCancel(ctx), reads, m.Endpoint); err != nil && !refused(err) {
		return nil, errors.Join(err, client.Close())
	}
	return &identifiedOperator{client, reads}, nil
}

// dialIdentified opens a client that accepts answers of the member alone.
func dialIdentified(ctx context.Context, doors Doors, m Member, cluster uint64) (Client, error) {
	client, err := doors.Dial(ctx, m.Endpoint)
	if err != nil {
		return nil, err
	}
	return &identifiedClient{client, m.Endpoint, identity{m.ID, cluster}}, nil
}

// oneCluster refuses endpoints of more than one cluster: whatever is compared
// or changed then would be meant for one of them only.
func oneCluster(probes []*probe) error {
	a := NewAnswers()
	for _, p := range probes {
		if p.who.cluster != 0 {
			a.clusters[p.who.cluster] = append(a.clusters[p.who.cluster], p.Endpoint)
		}
	}
	return a.OneCluster()
}

// Answers remembers who answered where, for commands that visit URLs of which
// they know nothing else.
type Answers struct {
	clusters map[uint64][]string
	members  map[uint64]string
}

// NewAnswers returns an empty memory.
func NewAnswers() *Answers {
	return &Answers{clusters: map[uint64][]string{}, members: map[uint64]string{}}
}

// Note fails where a member answers that answered at another URL before: it
// must not stand for the member that was meant.
func (a *Answers) Note(url string, h *pb.ResponseHeader) error {
	if h.GetMemberId() == 0 {
		return nil
	}
	if !slices.Contains(a.clusters[h.GetClusterId()], url) {
		a.clusters[h.GetClusterId()] = append(a.clusters[h.GetClusterId()], url)
	}
	first, known := a.members[h.GetMemberId()]
	if known && first != url {
		return fmt.Errorf("%w, as %s was", &OtherMemberError{URL: url, Member: h.GetMemberId(), Cluster: h.GetClusterId()}, first)
	}
	a.members[h.GetMemberId()] = url
	return nil
}

// CheckOneCluster returns ErrTwoClusters if the endpoints, given with the id of
// the cluster that answers at each, belong to more than one.
func CheckOneCluster(clusterAt map[string]uint64) error {
	a := NewAnswers()
	for _, ep := range slices.Sorted(maps.Keys(clusterAt)) {
		a.clusters[clusterAt[ep]] = append(a.clusters[clusterAt[ep]], ep)
	}
	return a.OneCluster()
}

// OneCluster is ErrTwoClusters where answers came from more than one cluster.
func (a *Answers) OneCluster() error {
	if len(a.clusters) < 2 {
		return nil
	}
	var parts []string
	for id, endpoints := range a.clusters {
		parts = append(parts, output.ID(id)+" at "+strings.Join(endpoints, ","))
	}
	slices.Sort(parts)
	return hint.With(fmt.Errorf("%w: %s", ErrTwoClusters, strings.Join(parts, "; ")), "give the endpoints of one of them with --endpoints")
}
