package snapshot

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"

	"github.com/etcdkit/etcdkit/internal/hint"
)

// Bounds of one question to a member while one is being chosen.
const (
	askTimeout     = 5 * time.Second
	metricsTimeout = 2 * time.Second
)

// probeKey is read to see that a member serves; it need not exist.
const probeKey = "health"

// Client is the part of *clientv3.Client that a save uses, at one endpoint.
type Client interface {
	Status(ctx context.Context, endpoint string) (*clientv3.StatusResponse, error)
	Get(ctx context.Context, key string, opts ...clientv3.OpOption) (*clientv3.GetResponse, error)
	MemberList(ctx context.Context, opts ...clientv3.OpOption) (*clientv3.MemberListResponse, error)
	ActiveConnection() *grpc.ClientConn
	Close() error
}

// Source is the cluster to take a snapshot of.
type Source struct {
	Endpoints []string
	Dial      func(ctx context.Context, endpoint string) (Client, error)
	// Explain, if set, says why a member cannot be used.
	Explain func(ctx context.Context, endpoint string, err error) error
	// Defragmenting, if set, reports whether a member is being defragmented now.
	Defragmenting func(ctx context.Context, endpoint string) (bool, error)
}

// blame says what is wrong with a member.
func (s Source) blame(ctx context.Context, endpoint string, err error) *MemberError {
	if s.Explain != nil {
		err = s.Explain(ctx, endpoint, err)
	}
	return &MemberError{endpoint, err}
}

// candidate is a member as it answered when it was asked.
type candidate struct {
	endpoint string
	client   Client
	status   *clientv3.StatusResponse
	quorum   bool  // it served a linearizable read
	revision int64 // that it had, at least
	busy     bool  // it is being defragmented, and answers little until that ends
	err      error // why it cannot serve
}

// candidates asks every endpoint and returns those that may serve a snapshot,
// best first, and why the others may not. The caller closes the clients.
func (s Source) candidates(ctx context.Context) (usable, failed []*candidate, err error) {
	if len(s.Endpoints) == 0 {
		return nil, nil, errors.New("save snapshot: no endpoint given")
	}
	all := make([]*candidate, len(s.Endpoints))
	var wg sync.WaitGroup
	for i, endpoint := range s.Endpoints {
		wg.Go(func() { all[i] = s.ask(ctx, endpoint) })
	}
	wg.Wait()
	if err := context.Cause(ctx); err != nil {
		return nil, nil, errors.Join(err, closeAll(all))
	}
	clusters := map[string]string{}
	for _, c := range all {
		if c.err != nil {
			failed = append(failed, c)
			continue
		}
		usable = append(usable, c)
		clusters[id(c.status.Header.GetClusterId())] = c.endpoint
	}
	if len(clusters) > 1 {
		err := fmt.Errorf("save snapshot: the endpoints are of different clusters: %s", describe(clusters))
		return nil, nil, errors.Join(hint.With(err, "name the members of one cluster in --endpoints"), closeAll(usable))
	}
	slices.SortStableFunc(usable, better)
	return usable, failed, nil
}

func describe(clusters map[string]string) string {
	var parts []string
	for cluster, endpoint := range clusters {
		parts = append(parts, endpoint+" is "+cluster)
	}
	slices.Sort(parts)
	return strings.Join(parts, ", ")
}

// better orders candidates: with quorum before without; among those one that is
// being defragmented last, and a follower before the leader, which has work
// enough; without, and between followers, the more advanced first.
func better(a, b *candidate) int {
	leads := func(c *candidate) bool { return c.quorum && c.status.Leader == c.status.Header.GetMemberId() }
	return cmp.Or(
		order(b.quorum, a.quorum),
		order(a.status.IsLearner, b.status.IsLearner),
		order(a.quorum && a.busy, b.quorum && b.busy),
		order(leads(a), leads(b)),
		cmp.Compare(b.revision, a.revision),
		cmp.Compare(b.status.RaftAppliedIndex, a.status.RaftAppliedIndex),
	)
}

// order compares booleans, false first.
func order(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}

func closeAll(all []*candidate) error {
	var errs []error
	for _, c := range all {
		if c.client != nil {
			errs = append(errs, c.client.Close())
		}
	}
	return errors.Join(errs...)
}

// ask finds out whether a member serves, and whether it has quorum.
func (s Source) ask(ctx context.Context, endpoint string) *candidate {
	c := &candidate{endpoint: endpoint}
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	if c.client, c.err = s.Dial(ctx, endpoint); c.err != nil {
		return c
	}
	var look sync.WaitGroup
	defer look.Wait()
	if s.Defragmenting != nil {
		look.Go(func() {
			ctx, cancel := context.WithTimeout(ctx, metricsTimeout)
			defer cancel()
			busy, err := s.Defragmenting(ctx, endpoint)
			c.busy = busy && err == nil // not every member shows its metrics
		})
	}
	if c.status, c.err = c.client.Status(ctx, endpoint); c.err != nil {
		c.err = errors.Join(c.err, c.client.Close())
		c.client = nil
		return c
	}
	c.revision = c.status.Header.GetRevision()
	if !c.status.IsLearner {
		c.probe(ctx)
	}
	return c
}

// probe sees whether the member has quorum. What follows this read in the same
// member is at least as new as every write acknowledged before.
func (c *candidate) probe(ctx context.Context) {
	resp, err := c.client.Get(ctx, probeKey, clientv3.WithCountOnly())
	switch {
	case err == nil:
		c.quorum, c.revision = true, resp.Header.GetRevision()
	case errors.Is(err, rpctypes.ErrPermissionDenied):
		c.quorum = true // refused only after the members agreed on where they are
	}
}

// await asks a member again that did not answer while it was being
// defragmented: that is not to lack quorum.
func (c *candidate) await(ctx context.Context, patience time.Duration) {
	if !c.busy || c.quorum || c.status.IsLearner {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	c.probe(ctx)
}

// open opens the snapshot stream.
func (c *candidate) open(ctx context.Context) (receiver, error) {
	return pb.NewMaintenanceClient(c.client.ActiveConnection()).Snapshot(ctx, &pb.SnapshotRequest{})
}

// name returns the member's name, "" if it cannot be found out.
func (c *candidate) name(ctx context.Context) string {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	resp, err := c.client.MemberList(ctx, clientv3.WithSerializable())
	if err != nil {
		return ""
	}
	for _, m := range resp.Members {
		if m.ID == c.status.Header.GetMemberId() {
			return m.Name
		}
	}
	return ""
}

// revisionNow asks for the revision after the stream has ended: the cluster's,
// or the member's own if that is all there is by now.
func (c *candidate) revisionNow(ctx context.Context) (int64, error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	status, err := c.client.Status(ctx, c.endpoint)
	if err != nil {
		return 0, err
	}
	revision := status.Header.GetRevision()
	if !c.quorum {
		return revision, nil
	}
	if resp, err := c.client.Get(ctx, probeKey, clientv3.WithCountOnly()); err == nil {
		revision = max(revision, resp.Header.GetRevision())
	}
	return revision, nil
}

// MemberError is why one member did not give a snapshot.
type MemberError struct {
	Endpoint string
	Err      error
}

func (e *MemberError) Error() string {
	text := e.Err.Error()
	if strings.HasPrefix(text, e.Endpoint) {
		return text
	}
	return e.Endpoint + ": " + text
}

func (e *MemberError) Unwrap() error { return e.Err }
