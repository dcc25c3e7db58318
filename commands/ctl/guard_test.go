package ctl

import (
	"strings"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/etcdkit/etcdkit/internal/embedded"
	"github.com/etcdkit/etcdkit/internal/testing/etcdtest"
)

// What is Kubernetes' is found from the data, wherever its prefix is, or known
// from the node's files.
func TestDeletionsThatTouchKubernetes(t *testing.T) {
	client := etcdtest.Client(t, etcdtest.Start(t, embedded.Options{}).Endpoints()...)
	for _, key := range []string{
		"/registry/namespaces/default", "/registry/pods/ns/a",
		"/kubernetes.io/namespaces/default", "/kubernetes.io/secrets/ns/a",
		"/openshift.io/routes/ns/a",
		"/tenants/one/namespaces/default", "/tenants/one/configmaps/ns/a",
		"/a/b/c/d/e/f/secrets/ns/a",
		"/app/users/a", "/app/templates/a",
	} {
		if _, err := client.Put(t.Context(), key, ""); err != nil {
			t.Fatal(err)
		}
	}
	prefix := func(key string) clientv3.Op { return clientv3.OpDelete(key, clientv3.WithPrefix()) }
	for name, tc := range map[string]struct {
		op    clientv3.Op
		known []string
		want  string // "" for nothing dangerous
	}{
		"one object":                                 {op: clientv3.OpDelete("/registry/pods/ns/a"), want: "delete 1 keys of cluster [0-9a-f]+: objects of Kubernetes under /registry?"},
		"one kind of object":                         {op: prefix("/registry/pods/"), want: "under /registry?"},
		"OpenShift's Kubernetes":                     {op: prefix("/kubernetes.io/secrets/"), want: "under /kubernetes.io?"},
		"OpenShift's own objects":                    {op: prefix("/openshift.io/routes/"), want: "under /openshift.io?"},
		"a range around it":                          {op: prefix("/open"), want: "under /openshift.io?"},
		"another prefix":                             {op: prefix("/tenants/one/configmaps/"), want: "under /tenants/one?"},
		"a range around one that nobody usually has": {op: prefix("/ten"), want: "under /tenants/one?"},
		"other programs' keys":                       {op: prefix("/app/")},
		"a prefix too deep to be found":              {op: prefix("/a/b/c/d/e/f/secrets/")},
		"which the node's files tell":                {op: prefix("/a/b/c/d/e/f/secrets/"), known: []string{"/a/b/c/d/e/f"}, want: "under /a/b/c/d/e/f?"},
		"and a range around it":                      {op: prefix("/a/b"), known: []string{"/a/b/c/d/e/f"}, want: "under /a/b/c/d/e/f?"},
		"beside a known one":                         {op: prefix("/app/"), known: []string{"/a/b/c/d/e/f"}},
		"a neighbour that begins the same":           {op: prefix("/app/users"), known: []string{"/app/user"}},
		"everything":                                 {op: clientv3.OpDelete("\x00", clientv3.WithFromKey()), want: "delete 10 keys of cluster [0-9a-f]+: the whole keyspace?"},
		"everything by another name":                 {op: prefix("/"), want: "the whole keyspace?"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := deletes(t.Context(), client, tc.known, tc.op)
			if err != nil || (got == "") != (tc.want == "") || !matches(got, tc.want) {
				t.Errorf("got %q, %v; want %q", got, err, tc.want)
			}
		})
	}
}

// matches compares the beginning and the end around a cluster's id.
func matches(got, want string) bool {
	before, after, _ := strings.Cut(want, "[0-9a-f]+")
	if after == "" {
		return strings.HasSuffix(got, want)
	}
	return strings.HasPrefix(got, before) && strings.HasSuffix(got, after)
}
