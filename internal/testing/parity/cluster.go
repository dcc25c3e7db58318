package parity

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.etcd.io/etcd/client/pkg/v3/types"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/etcdserver/api/membership"
	"go.uber.org/zap"

	"github.com/etcdkit/etcdkit/internal/testing/etcdtest"
	"github.com/etcdkit/etcdkit/internal/testing/process"
)

// startBound is how long a cluster may take to serve, on a busy machine.
const startBound = 3 * time.Minute

// cluster is upstream's etcd as processes. Its ids are the same length on
// either side, so that tables are as wide.
type cluster struct {
	token   string
	members []*member
	id      uint64
	dead    string // nobody listens there
}

type member struct {
	name         string
	id           uint64
	client, peer string
	tls          *tls.Config
	process      *process.Process
}

// startCluster starts members on free ports, with a token with which the ids
// come out right. They end with the test.
func startCluster(t testing.TB, etcd, dir string, sc Scenario) *cluster {
	t.Helper()
	c := &cluster{dead: "http://" + etcdtest.ReservePort(t)}
	scheme, flags, ours := transport(t, sc)
	for i := range sc.Members {
		c.members = append(c.members, &member{name: fmt.Sprintf("m%d", i+1), client: scheme + etcdtest.ReservePort(t), peer: "http://" + etcdtest.ReservePort(t), tls: ours})
	}
	if sc.Members == 0 {
		return c
	}
	if err := c.chooseToken(); err != nil {
		t.Fatal(err)
	}
	if len(c.members) == 1 { // who is alone waits for nothing but its own election
		flags = append([]string{"--heartbeat-interval=10", "--election-timeout=100"}, flags...)
	}
	for _, m := range c.members {
		m.process = process.Start(t, process.Command{
			Path: etcd, Env: []string{}, Log: filepath.Join(dir, m.name+".log"),
			Args: append([]string{
				"--name", m.name, "--data-dir", filepath.Join(dir, m.name+".etcd"),
				"--listen-client-urls", m.client, "--advertise-client-urls", m.client,
				"--listen-peer-urls", m.peer, "--initial-advertise-peer-urls", m.peer,
				"--initial-cluster", c.initial(), "--initial-cluster-token", c.token,
				"--unsafe-no-fsync", "--log-level", "warn",
			}, flags...),
		})
	}
	return c
}

// transport returns how clients reach the servers: the scheme, what the servers
// have to know, and what this process needs.
func transport(t testing.TB, sc Scenario) (scheme string, flags []string, ours *tls.Config) {
	t.Helper()
	if sc.CA == nil {
		return "http://", sc.Server, nil
	}
	pair := sc.CA.Server(t)
	flags = append([]string{"--cert-file", pair.CertFile, "--key-file", pair.KeyFile, "--trusted-ca-file", sc.CA.File, "--client-cert-auth"}, sc.Server...)
	return "https://", flags, sc.CA.ClientConfig(t, sc.CA.Client(t, "parity"))
}

// tokenTries is far more than the few dozen it takes.
const tokenTries = 100_000

func (c *cluster) chooseToken() error {
	for i := range tokenTries {
		c.token = fmt.Sprintf("parity-%d", i)
		fits, err := c.computeIDs()
		if err != nil || fits {
			return err
		}
	}
	return errors.New("no token gives ids of full length in the members' order")
}

// computeIDs computes the ids as the servers will, and reports whether all have
// 16 hex and 20 decimal digits and follow the members' order.
func (c *cluster) computeIDs() (bool, error) {
	urls, err := types.NewURLsMap(c.initial())
	if err != nil {
		return false, err
	}
	all, err := membership.NewClusterFromURLsMap(zap.NewNop(), c.token, urls)
	if err != nil {
		return false, err
	}
	const twentyDigits = 10_000_000_000_000_000_000
	c.id = uint64(all.ID())
	last := uint64(twentyDigits)
	for _, m := range c.members {
		m.id = uint64(all.MemberByName(m.name).ID)
		if m.id < last {
			return false, nil
		}
		last = m.id
	}
	return c.id >= twentyDigits, nil
}

func (c *cluster) initial() string {
	var all []string
	for _, m := range c.members {
		all = append(all, m.name+"="+m.peer)
	}
	return strings.Join(all, ",")
}

// settle waits until every member knows the cluster's version, and makes member
// 1 the leader.
func (c *cluster) settle() error {
	ctx, cancel := context.WithTimeout(context.Background(), startBound)
	defer cancel()
	for _, m := range c.members {
		if err := m.waitSettled(ctx); err != nil {
			return fmt.Errorf("start %s: %w", m.name, err)
		}
	}
	for _, m := range c.members[min(1, len(c.members)):] {
		client, err := m.dial(ctx)
		if err != nil {
			return err
		}
		// Only the leader accepts it.
		_, _ = client.MoveLeader(ctx, c.members[0].id)
		if err := client.Close(); err != nil {
			return err
		}
	}
	return nil
}

func (m *member) dial(ctx context.Context) (*clientv3.Client, error) {
	return clientv3.New(clientv3.Config{Endpoints: []string{m.client}, Context: ctx, TLS: m.tls, Logger: zap.NewNop()})
}

func (m *member) waitSettled(ctx context.Context) error {
	client, err := m.dial(ctx)
	if err != nil {
		return err
	}
	defer client.Close()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		attempt, cancel := context.WithTimeout(ctx, time.Second)
		status, err := client.Status(attempt, m.client)
		cancel()
		if err == nil && status.StorageVersion == "3.7.0" && status.Leader != 0 {
			return nil
		}
		select {
		case <-m.process.Done():
			return errors.New("it ended by itself")
		case <-ctx.Done():
			return errors.Join(context.Cause(ctx), err)
		case <-tick.C:
		}
	}
}

// names are what {NAME} stands for.
func (c *cluster) names() map[string]string {
	names := map[string]string{"dead": c.dead, "deadhost": host(c.dead), "ep1": c.dead, "cluster": strconv.FormatUint(c.id, 16)}
	var eps []string
	for i, m := range c.members {
		n := strconv.Itoa(i + 1)
		names["ep"+n], names["peer"+n], names["m"+n] = m.client, m.peer, strconv.FormatUint(m.id, 16)
		names["host"+n] = host(m.client)
		eps = append(eps, m.client)
	}
	names["ep"] = strings.Join(eps, ",")
	return names
}

// ids are the ids by the names that a report shows.
func (c *cluster) ids() map[uint64]string {
	ids := map[uint64]string{}
	if len(c.members) > 0 {
		ids[c.id] = "<cluster>"
	}
	for _, m := range c.members {
		ids[m.id] = "<" + m.name + ">"
	}
	return ids
}
