package app

import (
	"context"
	"fmt"
	"strings"
	"sync"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/etcdkit/etcdkit/internal/etcd"
	"github.com/etcdkit/etcdkit/internal/output"
)

// Visit is a member with the endpoint at which this run visits it.
type Visit struct {
	ID       uint64
	Endpoint string

	note string // why it is not at the member's own URL
}

// ListMembers returns the cluster's members, as the endpoints of c list them.
func (a *App) ListMembers(ctx context.Context, c etcd.Config) ([]*pb.Member, error) {
	client, err := a.Dial(ctx, c)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	bounded, cancel := a.Timeout(ctx)
	defer cancel()
	// Serializable, so that a cluster without quorum can be looked at too.
	resp, err := client.MemberList(bounded, clientv3.WithSerializable())
	if err != nil {
		return nil, err
	}
	return resp.Members, nil
}

// Visits returns where to visit each member that has been started: at an
// endpoint that was given, since that works from here, else at a URL that the
// member advertises. Where it answers at none of those, as behind a tunnel, an
// endpoint that was given and answers as this member stands in. It says so.
func (a *App) Visits(ctx context.Context, c etcd.Config, members []*pb.Member) []Visit {
	strangers := a.strangers(ctx, c, members)
	visits := make([]*Visit, len(members))
	var wg sync.WaitGroup
	for i, m := range members {
		if len(m.GetClientURLs()) == 0 {
			a.Warn("member %x has not started yet, so it has no endpoint to visit", m.GetID())
			continue
		}
		wg.Go(func() { visits[i] = a.visitAt(ctx, c, m, strangers) })
	}
	wg.Wait()
	var all []Visit
	for _, v := range visits {
		if v == nil {
			continue
		}
		if v.note != "" {
			a.Note("%s", v.note)
		}
		all = append(all, *v)
	}
	return all
}

// visitAt returns where to visit one member.
func (a *App) visitAt(ctx context.Context, c etcd.Config, m *pb.Member, strangers map[string]uint64) *Visit {
	urls := m.GetClientURLs()
	v := &Visit{ID: m.GetID(), Endpoint: urls[0]}
	for _, given := range c.Endpoints {
		if advertises(m, given) {
			v.Endpoint = given
			return v
		}
	}
	if len(urls) == 1 && len(strangers) == 0 {
		return v
	}
	for _, u := range urls {
		if a.memberAt(ctx, c.At(u)) == m.GetID() {
			v.Endpoint = u
			return v
		}
	}
	for _, given := range c.Endpoints {
		if strangers[given] == m.GetID() {
			v.Endpoint = given
			v.note = fmt.Sprintf("member %s is visited at %s, which was given: its own URL %s does not answer from here", label(m), given, urls[0])
			return v
		}
	}
	if len(strangers) > 0 {
		v.note = fmt.Sprintf("member %s: its own URL %s does not answer from here; if it is behind a tunnel, add --resolve %s=ADDRESS:PORT",
			label(m), urls[0], etcd.HostPort(urls[0]))
	}
	return v
}

// strangers returns the given endpoints that no member advertises, such as a
// tunnel's, with the ids of the members that answer there; 0 is nobody's.
func (a *App) strangers(ctx context.Context, c etcd.Config, members []*pb.Member) map[string]uint64 {
	found := map[string]uint64{}
	var mu sync.Mutex
	var wg sync.WaitGroup
	for _, given := range c.Endpoints {
		known := false
		for _, m := range members {
			known = known || advertises(m, given)
		}
		if known {
			continue
		}
		wg.Go(func() {
			id := a.memberAt(ctx, c.At(given))
			mu.Lock()
			defer mu.Unlock()
			found[given] = id
		})
	}
	wg.Wait()
	return found
}

// memberAt returns the id of the member that answers at the endpoint, 0 where
// none does.
func (a *App) memberAt(ctx context.Context, c etcd.Config) uint64 {
	ctx, cancel := a.Timeout(ctx)
	defer cancel()
	client, err := a.Dial(ctx, c)
	if err != nil {
		return 0
	}
	defer client.Close()
	status, err := client.Status(ctx, c.Endpoints[0])
	if err != nil {
		return 0
	}
	return status.Header.GetMemberId()
}

// advertises reports whether the endpoint is a client URL of the member, with
// or without a scheme.
func advertises(m *pb.Member, endpoint string) bool {
	for _, u := range m.GetClientURLs() {
		if etcd.HostPort(u) == etcd.HostPort(endpoint) {
			return true
		}
	}
	return false
}

func label(m *pb.Member) string {
	return strings.TrimSpace(fmt.Sprintf("%s (%s)", m.GetName(), output.ID(m.GetID())))
}
