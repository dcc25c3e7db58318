package commands_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/etcdkit/etcdkit/internal/embedded"
	"github.com/etcdkit/etcdkit/internal/testing/etcdtest"
)

func TestASaveAvoidsTheMemberThatIsBeingDefragmented(t *testing.T) {
	t.Parallel()
	cluster := etcdtest.Start(t, embedded.Options{Members: 3})
	status, err := etcdtest.Client(t, cluster.Endpoints()...).Status(t.Context(), cluster.Endpoints()[0])
	if err != nil {
		t.Fatal(err)
	}
	var leader, follower string
	for _, m := range cluster.Members {
		if m.ID() == status.Leader {
			leader = strings.Replace(m.Endpoint(), "127.0.0.1", "localhost", 1) // pages are matched by host
		} else {
			follower = m.Endpoint()
		}
	}
	inflight := 0
	metrics := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, "# TYPE etcd_disk_defrag_inflight gauge\netcd_disk_defrag_inflight %d\n", inflight)
	}))
	defer metrics.Close()
	for _, tc := range []struct {
		name, page string
		inflight   int
		want       string
	}{
		{"nobody is busy", metrics.URL, 0, follower},
		{"the follower is busy", metrics.URL, 1, leader},
		{"nobody can tell", "http://127.0.0.1:1", 1, follower},
	} {
		inflight = tc.inflight
		file := filepath.Join(t.TempDir(), "x.db")
		code, stdout, stderr := run(t, "etcdkit", "snapshot", "save", file, "--endpoints", follower+","+leader, "--metrics-urls", tc.page)
		if code != 0 || !strings.Contains(stdout, " from "+tc.want+" to ") {
			t.Errorf("%s: exit code %d, %s%s; want it from %s", tc.name, code, stdout, stderr, tc.want)
		}
	}
}
