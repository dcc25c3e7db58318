package kube_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/etcdkit/etcdkit/internal/embedded"
	"github.com/etcdkit/etcdkit/internal/hint"
	"github.com/etcdkit/etcdkit/internal/kube"
	"github.com/etcdkit/etcdkit/internal/testing/etcdtest"
)

const storedPod = "k8s\x00pod"

func TestDiscover(t *testing.T) {
	cluster := etcdtest.Start(t, embedded.Options{})
	client := etcdtest.Client(t, cluster.Endpoints()...)
	for name, tc := range map[string]struct{ keys, want []string }{
		"the usual prefix":         {[]string{"/registry/namespaces/a", "/registry/pods/a/b"}, []string{"/registry"}},
		"OpenShift's two":          {[]string{"/kubernetes.io/namespaces/a", "/kubernetes.io/pods/a/b", "/openshift.io/routes/a/b"}, []string{"/kubernetes.io", "/openshift.io"}},
		"control planes by name":   {[]string{"/x/one/namespaces/a", "/x/one/secrets/a/b", "/x/two/pods/a/b", "/x/two/ranges/ips"}, []string{"/x/one", "/x/two"}},
		"one kind alone":           {[]string{"/app/events/a/b"}, []string{"/app"}},
		"a namespace is no prefix": {[]string{"/x/deployments/n/a", "/x/podtemplates/secrets/a"}, []string{"/x"}},
		"one below another's prefix": {
			[]string{"/registry/namespaces/a", "/registry/secrets/a/b", "/registry/tenant-b/secrets/a/b"}, []string{"/registry", "/registry/tenant-b"},
		},
		"one below another's, with a dot": {
			[]string{"/registry/namespaces/a", "/registry/tenant.b/secrets/a/b"}, []string{"/registry", "/registry/tenant.b"},
		},
		"a prefix that is called as a resource": {[]string{"/pods/registry/secrets/a/b", "/pods/registry/a.b/c/d"}, []string{"/pods/registry"}},
		"new resources only":                    {[]string{"/x/podgroups/a/b"}, []string{"/x"}},
		"nothing":                               {nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := client.Delete(t.Context(), "\x00", clientv3.WithFromKey()); err != nil {
				t.Fatal(err)
			}
			var file kube.Finder // what the keys give in a database file
			for _, key := range tc.keys {
				file.Add([]byte(key), []byte(storedPod))
				if _, err := client.Put(t.Context(), key, storedPod); err != nil {
					t.Fatal(err)
				}
			}
			got, err := kube.Discover(t.Context(), client)
			if err != nil || !slices.Equal(got, tc.want) {
				t.Errorf("got %q, %v; want %q", got, err, tc.want)
			}
			if inFile := file.Prefixes(); !slices.Equal(got, inFile) {
				t.Errorf("the live cluster gives %q, a file %q", got, inFile)
			}
		})
	}
}

// endless is a keyspace with another directory after each, on every level.
type endless struct{ asked int }

func (e *endless) Get(_ context.Context, key string, _ ...clientv3.OpOption) (*clientv3.GetResponse, error) {
	e.asked++
	if strings.HasSuffix(key, "s/") || strings.HasSuffix(key, "oauth/") { // of a kind of object
		return &clientv3.GetResponse{}, nil
	}
	dir := key[:strings.LastIndexByte(key, '/')+1]
	return &clientv3.GetResponse{Kvs: []*mvccpb.KeyValue{{Key: fmt.Appendf(nil, "%s%09d/x", dir, e.asked)}}}, nil
}

func TestDiscoverFindsAControlPlaneBehindManyOthers(t *testing.T) {
	client := etcdtest.Client(t, etcdtest.Start(t, embedded.Options{}).Endpoints()...)
	for n := 0; n < 500; {
		var puts []clientv3.Op
		for range 100 {
			puts = append(puts, clientv3.OpPut(fmt.Sprintf("/hosted/%03d/other", n), ""))
			n++
		}
		if _, err := client.Txn(t.Context()).Then(puts...).Commit(); err != nil {
			t.Fatal(err)
		}
	}
	for _, key := range []string{"/hosted/last/pods/a/b", "/hosted/last/secrets/a/b"} {
		if _, err := client.Put(t.Context(), key, storedPod); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := kube.Discover(t.Context(), client); err != nil || !slices.Equal(got, []string{"/hosted/last"}) {
		t.Errorf("got %q, %v; want the one behind 500 others", got, err)
	}
}

func TestDiscoveryOfAnEndlessKeyspaceEnds(t *testing.T) {
	keyspace := &endless{}
	found, err := kube.Discover(t.Context(), keyspace)
	if hint.Of(err) == "" || found != nil || keyspace.asked > 101_000 {
		t.Errorf("got %q, %v after %d requests; want an error that names a flag", found, err, keyspace.asked)
	}
}
