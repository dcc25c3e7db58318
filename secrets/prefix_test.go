package secrets_test

import (
	"errors"
	"testing"

	"github.com/etcdkit/etcdkit/secrets"
)

// A prefix that contains a resource's name has keys, and none that an API
// server would read there: a live cluster refuses it as a file does.
func TestAPrefixWithoutObjectsIsRefusedLive(t *testing.T) {
	c := newCluster(t)
	c.put("/registry/secrets/ns/plain", inClear)
	c.put("/other/leases/ns/one", "k8s\x00")
	for prefix, want := range map[string]error{
		"/registry": nil, "/other": nil,
		"/registry/secrets": secrets.ErrNotKubernetes, "/registry/secrets/ns": secrets.ErrNotKubernetes,
		"/registri": secrets.ErrNotKubernetes, "/registry/namespaces": secrets.ErrNotKubernetes,
	} {
		opts := secrets.ClusterOptions{Options: secrets.Options{Prefixes: []string{prefix}, Places: []secrets.Place{secrets.Live}}}
		if _, err := secrets.ScanCluster(t.Context(), c.client, opts); !errors.Is(err, want) || (want == nil) != (err == nil) {
			t.Errorf("%s: %v, want %v", prefix, err, want)
		}
	}
}
