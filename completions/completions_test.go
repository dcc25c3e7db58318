package completions_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/etcdkit/etcdkit/completions"
	"github.com/etcdkit/etcdkit/internal/embedded"
	"github.com/etcdkit/etcdkit/internal/etcd"
	"github.com/etcdkit/etcdkit/internal/testing/etcdtest"
)

func TestCompletionsOfACluster(t *testing.T) {
	cluster := etcdtest.Start(t, embedded.Options{})
	c, err := etcd.Dial(t.Context(), etcd.Config{Endpoints: cluster.Endpoints()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	for _, key := range []string{"config", "/registry/pods/a/x", "/registry/pods/b/y", "/registry/secrets/a/z", "/registry/", "/regular"} {
		if _, err := c.Put(t.Context(), key, "v"); err != nil {
			t.Fatal(err)
		}
	}
	id := fmt.Sprintf("%x", cluster.Members[0].ID())
	keys := func(typed string) func(context.Context, completions.Cluster) ([]string, error) {
		return func(ctx context.Context, c completions.Cluster) ([]string, error) {
			return completions.Keys(ctx, c, typed)
		}
	}
	for name, tc := range map[string]struct {
		complete func(context.Context, completions.Cluster) ([]string, error)
		want     []string
	}{
		"member ids":                       {completions.MemberIDs, []string{id + "\tm1"}},
		"member names":                     {completions.MemberNames, []string{"m1\t" + id}},
		"members by name and id":           {completions.Members, []string{"m1\t" + id, id + "\tm1"}},
		"endpoints":                        {completions.Endpoints, []string{cluster.Endpoints()[0] + "\tm1"}},
		"the first part of all keys":       {keys(""), []string{"/", "config"}},
		"a part that is begun":             {keys("/reg"), []string{"/registry/", "/regular"}},
		"what is below a folder":           {keys("/registry/p"), []string{"/registry/pods/"}},
		"folders are not entered by force": {keys("/registry/pods/"), []string{"/registry/pods/a/", "/registry/pods/b/"}},
		"nothing there":                    {keys("nosuch"), nil},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := tc.complete(t.Context(), c)
			if err != nil || !slices.Equal(got, tc.want) {
				t.Errorf("got %q, %v; want %q", got, err, tc.want)
			}
		})
	}
}

func TestADeadClusterOffersNothingInTime(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	c, err := clientv3.New(clientv3.Config{Endpoints: []string{"127.0.0.1:1"}})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if words, err := completions.Keys(ctx, c, ""); err == nil || words != nil {
		t.Errorf("got %q, %v; want an error", words, err)
	}
}
