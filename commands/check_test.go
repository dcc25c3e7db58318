package commands_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/etcdkit/etcdkit/internal/embedded"
	"github.com/etcdkit/etcdkit/internal/testing/etcdtest"
)

// etcd-io/etcd#9326: each run of upstream's check makes the database of a
// live cluster larger, for good.
func TestCheckLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	c := etcdtest.Start(t, embedded.Options{Members: 3})
	endpoints := "--endpoints=" + strings.Join(c.Endpoints(), ",")
	_, stdout, stderr := run(t, "etcdkit", "check", "perf", "--duration=2s", "-w", "json", endpoints)
	var result struct {
		WritesPerSecond float64 `json:"writesPerSecond"`
		Cleanup         struct {
			Before int64  `json:"dbSizeBytesBefore"`
			After  int64  `json:"dbSizeBytesAfter"`
			Error  string `json:"cleanupError"`
		} `json:"cleanup"`
	}
	if err := json.Unmarshal([]byte(stdout), &result); err != nil {
		t.Fatalf("%v in %q; standard error:\n%s", err, stdout, stderr)
	}
	if result.WritesPerSecond <= 0 || result.Cleanup.Error != "" || result.Cleanup.After > result.Cleanup.Before {
		t.Errorf("got %+v; standard error:\n%s", result, stderr)
	}
	if _, left, _ := run(t, "etcdkit", "get", "", "--prefix", "--keys-only", endpoints); left != "" {
		t.Errorf("keys are left: %q", left)
	}
}

// A member that was not compared is no agreement, though the others agree.
func TestHashKVOfAClusterMissesTheDead(t *testing.T) {
	t.Parallel()
	c := etcdtest.Start(t, embedded.Options{Members: 3})
	c.Members[2].Stop()
	code, stdout, stderr := kit(t, "endpoint", "hashkv", "--cluster", "--endpoints="+c.Members[0].Endpoint())
	if code != 4 || !strings.Contains(stdout, "connection refused") || !strings.Contains(stderr, "2 members agree at revision") {
		t.Errorf("exit code %d, want 4;\n%s%s", code, stdout, stderr)
	}
}
