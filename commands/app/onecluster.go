package app

import (
	"context"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/etcdkit/etcdkit/health"
	"github.com/etcdkit/etcdkit/internal/cli"
	"github.com/etcdkit/etcdkit/internal/etcd"
)

// admitInterval lies between two looks at endpoints that did not answer.
const admitInterval = time.Second

// lists remembers what was found about lists of endpoints, so that a run asks
// only once.
type lists struct {
	mu  sync.Mutex
	all map[string]*endpointList
}

// endpointList is a list of endpoints that do not name two clusters. Nil is a
// list that needed no look.
type endpointList struct {
	cluster  uint64
	answered []string // none where nothing could be connected to
	admits   atomic.Bool
}

// OneCluster returns an error if the endpoints of c belong to more than one
// cluster: the client library would send each request to any of them. With
// one endpoint nothing is asked, nor under upstream's names.
func (a *App) OneCluster(ctx context.Context, c etcd.Config) error {
	_, err := a.oneCluster(ctx, c)
	return err
}

func (a *App) oneCluster(ctx context.Context, c etcd.Config) (*endpointList, error) {
	if a.Dialect != cli.Native || len(c.Endpoints) < 2 {
		return nil, nil //nolint:nilnil // a list that needs no look
	}
	a.lists.mu.Lock()
	defer a.lists.mu.Unlock()
	key := strings.Join(c.Endpoints, "\n")
	if known := a.lists.all[key]; known != nil {
		return known, nil
	}
	bounded, cancel := a.Timeout(ctx)
	defer cancel()
	found, err := etcd.Clusters(bounded, c)
	if err != nil {
		return nil, etcd.Diagnose(ctx, c, err)
	}
	if err := health.CheckOneCluster(found); err != nil {
		return nil, cli.Usage(err)
	}
	l := &endpointList{}
	for _, ep := range c.Endpoints {
		if id, ok := found[ep]; ok {
			l.cluster, l.answered = id, append(l.answered, ep)
		}
	}
	if a.lists.all == nil {
		a.lists.all = map[string]*endpointList{}
	}
	a.lists.all[key] = l
	return l, nil
}

// answering returns c with the endpoints that named their cluster. The others
// may belong to another one. Where none did, the request shows what is wrong.
func (l *endpointList) answering(c etcd.Config) etcd.Config {
	if l == nil || len(l.answered) == 0 {
		return c
	}
	return c.At(l.answered...)
}

// admitLater adds endpoints that did not answer to the client when they do and
// belong to its cluster, for commands that run on. One client of a run is
// enough: the others were opened beside it.
func (l *endpointList) admitLater(c etcd.Config, client *clientv3.Client) {
	if l == nil || len(l.answered) == 0 || len(l.answered) == len(c.Endpoints) || l.admits.Swap(true) {
		return
	}
	go func() {
		defer l.admits.Store(false)
		l.admit(client.Ctx(), c, client)
	}()
}

func (l *endpointList) admit(ctx context.Context, c etcd.Config, client *clientv3.Client) {
	admitted := slices.Clone(l.answered)
	missing := slices.DeleteFunc(slices.Clone(c.Endpoints), func(ep string) bool { return slices.Contains(admitted, ep) })
	for len(missing) > 0 {
		select {
		case <-ctx.Done():
			return
		case <-time.After(admitInterval):
		}
		bounded, cancel := context.WithTimeout(ctx, admitInterval)
		found, _ := etcd.Clusters(bounded, c.At(missing...)) // what does not answer is asked again
		cancel()
		for ep, id := range found {
			if id == l.cluster {
				admitted = append(admitted, ep)
			}
			missing = slices.DeleteFunc(missing, func(m string) bool { return m == ep })
		}
		if len(found) > 0 && ctx.Err() == nil {
			client.SetEndpoints(admitted...)
		}
	}
}
