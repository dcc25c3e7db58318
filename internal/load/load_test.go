package load_test

import (
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/etcdkit/etcdkit/internal/embedded"
	"github.com/etcdkit/etcdkit/internal/load"
	"github.com/etcdkit/etcdkit/internal/testing/etcdtest"
	"github.com/etcdkit/etcdkit/internal/testing/faultproxy"
)

// A server that stops in the middle keeps no write for longer than its deadline.
func TestEachWriteHasADeadline(t *testing.T) {
	t.Parallel()
	proxy := faultproxy.NewTCP(t, etcdtest.Start(t, embedded.Options{}).Endpoints()[0])
	client := etcdtest.Client(t, proxy.Addr())
	if _, err := client.Get(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	proxy.Set(faultproxy.Faults{ToServer: faultproxy.Flow{StallAfter: faultproxy.AtOnce}})
	failed := make(chan int)
	go func() {
		stats := load.Run(t.Context(), []*clientv3.Client{client}, load.Options{Prefix: "p/", KeySize: 16, ValueSize: 1, Total: 2, Timeout: 100 * time.Millisecond}, func() {})
		n := 0
		for _, of := range stats.ErrorDist {
			n += of
		}
		failed <- n
	}()
	select {
	case n := <-failed:
		if n != 2 {
			t.Errorf("%d writes failed, want 2", n)
		}
	case <-time.After(time.Minute):
		t.Fatal("the load does not end")
	}
}
