package commands_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/etcdkit/etcdkit/internal/embedded"
	"github.com/etcdkit/etcdkit/internal/testing/etcdtest"
)

// etcd-io/etcd#9531
func TestAnEndpointWithoutAnAnswerIsListed(t *testing.T) {
	t.Parallel()
	s := newSession(t)
	got := s.run("endpoint", "status", "--endpoints", s.endpoint+",127.0.0.1:1", "-w", "json")
	var all []struct {
		Endpoint string
		Status   *struct{}
		Error    string
	}
	if err := json.Unmarshal([]byte(got.out), &all); err != nil || len(all) != 2 {
		t.Fatalf("%v, %+v", err, got)
	}
	if live := all[0]; live.Endpoint != s.endpoint || live.Status == nil || live.Error != "" {
		t.Errorf("the live one: %+v", live)
	}
	if dead := all[1]; dead.Endpoint != "127.0.0.1:1" || dead.Status != nil || !strings.Contains(dead.Error, "connection refused") {
		t.Errorf("the dead one: %+v", dead)
	}
	if got.code != 1 {
		t.Errorf("exit code %d", got.code)
	}
}

// etcd-io/etcd#9535, #9975, #14294
func TestIDsStandInHexBesideTheNumbers(t *testing.T) {
	t.Parallel()
	s := newSession(t)
	resp, err := s.client.MemberList(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	cluster, member := resp.Header.ClusterId, resp.Members[0].ID
	got := s.run("member", "list", "-w", "json")
	var doc struct {
		Header struct {
			ClusterID    uint64 `json:"cluster_id"`
			ClusterIDHex string `json:"cluster_id_hex"`
		} `json:"header"`
		Members []struct {
			ID    uint64 `json:"ID"`
			IDHex string `json:"ID_hex"`
		} `json:"members"`
	}
	if err := json.Unmarshal([]byte(got.out), &doc); err != nil || len(doc.Members) != 1 {
		t.Fatalf("%v, %+v", err, got)
	}
	if doc.Header.ClusterID != cluster || doc.Header.ClusterIDHex != fmt.Sprintf("%016x", cluster) {
		t.Errorf("cluster %+v, want %d", doc.Header, cluster)
	}
	if m := doc.Members[0]; m.ID != member || m.IDHex != fmt.Sprintf("%016x", member) {
		t.Errorf("member %+v, want %d", m, member)
	}
}

// etcd-io/etcd#13709: a term from 10 on was printed as a hexadecimal number
// without quotes, which is no JSON.
func TestTermsFromTenOnAreJSON(t *testing.T) {
	t.Parallel()
	c := etcdtest.Start(t, embedded.Options{Members: 2})
	clients := map[uint64]int{c.Members[0].ID(): 0, c.Members[1].ID(): 1}
	var term uint64
	etcdtest.Until(t, "the term is 10", func(ctx context.Context) bool {
		status, err := etcdtest.Client(t, c.Members[0].Endpoint()).Status(ctx, c.Members[0].Endpoint())
		if err != nil {
			return false
		}
		if term = status.RaftTerm; term >= 10 {
			return true
		}
		leader := clients[status.Leader]
		_, _ = etcdtest.Client(t, c.Members[leader].Endpoint()).MoveLeader(ctx, c.Members[1-leader].ID())
		return false
	})
	for _, program := range []string{"etcdkit", "etcdctl"} {
		code, stdout, stderr := run(t, program, "--endpoints", c.Endpoints()[0], "member", "list", "--hex", "-w", "json")
		var doc struct {
			Header struct {
				Term uint64 `json:"raft_term"`
			} `json:"header"`
		}
		if err := json.Unmarshal([]byte(stdout), &doc); err != nil || code != 0 || doc.Header.Term < term {
			t.Errorf("%s: exit code %d, %v, term %d, want %d:\n%s%s", program, code, err, doc.Header.Term, term, stdout, stderr)
		}
	}
}

// etcd-io/etcd#12966
func TestRootIgnoresNarrowerGrants(t *testing.T) {
	t.Parallel()
	s := newSession(t)
	etcdtest.EnableAuth(t, s.client, "secret")
	s.environ = []string{"ETCDCTL_USER=root", "ETCDCTL_PASSWORD=secret"}
	s.run("role", "add", "root")
	s.run("role", "add", "reader")
	s.run("user", "add", "alice", "--no-password")
	s.run("user", "add", "bob", "--no-password")
	for name, tc := range map[string]struct {
		args []string
		told bool
	}{
		"a grant to the role root":   {[]string{"role", "grant-permission", "root", "read", "a"}, true},
		"the role root for a user":   {[]string{"user", "grant-role", "alice", "root"}, true},
		"a grant to another role":    {[]string{"role", "grant-permission", "reader", "read", "a"}, false},
		"another role for a user":    {[]string{"user", "grant-role", "bob", "reader"}, false},
		"another role for user root": {[]string{"user", "grant-role", "root", "reader"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			got := s.run(tc.args...)
			if told := strings.Contains(got.err, "may read and write everything"); got.code != 0 || told != tc.told {
				t.Errorf("told %t, want %t: %+v", told, tc.told, got)
			}
		})
	}
}
