//go:build unix

package snapshot_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/etcdkit/etcdkit/internal/testing/etcdtest"
	"github.com/etcdkit/etcdkit/snapshot"
)

const (
	restoreVictim = "restore"
	envPoint      = "ETCDKIT_TEST_POINT" // "NUMBER MESSAGE": dies when it logs that for the time given
	envTarget     = "ETCDKIT_TEST_TARGET"
	envWAL        = "ETCDKIT_TEST_WAL"
)

// runRestoreVictim restores, and dies by SIGKILL on the way.
func runRestoreVictim() {
	var left int
	at := os.Getenv(envPoint)
	if _, err := fmt.Sscan(at, &left); err != nil {
		return
	}
	_, message, _ := strings.Cut(at, " ")
	die := zap.Hooks(func(e zapcore.Entry) error {
		if e.Message == message {
			left--
		}
		if left == 0 {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			time.Sleep(time.Minute) // the signal is on its way
		}
		return nil
	})
	f, err := os.Open(filepath.Join("testdata", "kubernetes.db"))
	if err != nil {
		return
	}
	opts := single(os.Getenv(envTarget))
	opts.WALDir, opts.Log = os.Getenv(envWAL), zap.Must(zap.NewDevelopment(die))
	_, err = snapshot.Restore(context.Background(), snapshot.RestoreSource{Name: f.Name(), Reader: f}, opts)
	fmt.Fprintln(os.Stderr, "still alive:", err)
}

// Wherever a restore is killed, there is either a whole member or none, and
// the next run gets there.
func TestARestoreThatIsKilledLeavesAllOrNothing(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		point   string
		wal     bool // outside of the data directory
		whole   bool
		refused bool // the next run needs --move-aside
	}{
		"while it builds":                       {point: "1 added member"},
		"while it builds, with a log outside":   {point: "1 added member", wal: true},
		"between the log and the member":        {point: "1 moved into place", wal: true, refused: true},
		"after the member is in place":          {point: "1 moved into place", whole: true, refused: true},
		"after both are in place":               {point: "2 moved into place", wal: true, whole: true, refused: true},
		"when all is done but for the clearing": {point: "1 restored snapshot", whole: true, refused: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			opts := single(filepath.Join(t.TempDir(), "d"))
			if tc.wal {
				opts.WALDir = filepath.Join(t.TempDir(), "wal")
			}
			killedRestore(t, tc.point, opts)
			if _, err := os.Stat(filepath.Join(opts.DataDir, "member")); (err == nil) != tc.whole {
				t.Errorf("stat of the member: %v, want it whole: %v", err, tc.whole)
			}
			_, err := snapshot.Restore(t.Context(), sourceOf(kubernetes(t)), opts)
			if (err != nil) != tc.refused {
				t.Fatalf("the next run: %v, want it refused: %v", err, tc.refused)
			}
			if tc.refused {
				opts.MoveAside = true
				restoreTo(t, kubernetes(t), opts)
			}
			entries, err := os.ReadDir(opts.DataDir)
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range entries {
				if e.Name() != "member" && !strings.HasPrefix(e.Name(), "member.old-") {
					t.Errorf("left in the target: %s", e.Name())
				}
			}
		})
	}
}

// killedRestore runs a restore that is killed at a point.
func killedRestore(t *testing.T, point string, opts snapshot.RestoreOptions) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), envVictim+"="+restoreVictim, envPoint+"="+point, envTarget+"="+opts.DataDir, envWAL+"="+opts.WALDir)
	out, err := cmd.CombinedOutput()
	if status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); err == nil || !ok || status.Signal() != syscall.SIGKILL {
		t.Fatalf("%v, want it killed\n%s", err, out)
	}
}

// What is in place after a kill is a member that etcd serves.
func TestAMemberInPlaceIsWholeThoughTheRestoreWasKilled(t *testing.T) {
	t.Parallel()
	servers := etcdtest.NewServers(t, etcdtest.ServerOptions{})
	opts := memberOf(servers, 0)
	killedRestore(t, "1 moved into place", opts)
	servers.Start()
	resp, err := etcdtest.Client(t, servers.Endpoints()...).Get(t.Context(), "/registry/", clientv3.WithPrefix(), clientv3.WithCountOnly())
	if err != nil || resp.Count == 0 || resp.Header.Revision <= snapshot.KubernetesBump {
		t.Errorf("%v, %v; want the keys, at a revision that moved on", resp, err)
	}
}
