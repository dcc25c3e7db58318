package utl

import (
	"strings"
	"testing"

	"github.com/etcdkit/etcdkit/snapshot"
)

// etcd boots without the restored log where the command that starts it does not
// name its folder.
func TestThePlanNamesTheWALDirectory(t *testing.T) {
	opts := snapshot.RestoreOptions{DataDir: "m1.etcd", WALDir: "/wal/m1.etcd", Name: "m1", InitialCluster: "m1=http://a:1,m2=http://b:1"}
	o := restoreOptions{walDir: opts.WALDir, sourceWALDir: "/old/wal"}
	m := snapshot.PlannedMember{Name: "m2", PeerURLs: []string{"http://b:1"}}
	if got := startLine(opts, m); !strings.Contains(got, " --wal-dir /wal/m2.etcd ") {
		t.Errorf("start: %s", got)
	}
	got := restoreLine(o, opts, snapshot.Facts{Token: "t"}, m, "/old/data")
	if !strings.Contains(got, " --wal-dir /wal/m2.etcd") || !strings.Contains(got, " --source-wal-dir /old/wal") {
		t.Errorf("restore: %s", got)
	}
	opts.WALDir = ""
	if got := startLine(opts, m); strings.Contains(got, "--wal-dir") {
		t.Errorf("start: %s", got)
	}
}

func TestRestoringForAnotherUserIsWarnedAbout(t *testing.T) {
	r := &snapshot.Restored{DataDir: "/d", WALDir: "/w", Owner: &snapshot.Owner{}, Before: &snapshot.Owner{UID: 123456, GID: 123456}}
	if got := ownerWarning(r); !strings.Contains(got, "chown -R 123456:123456 /d /w") {
		t.Errorf("%q, want how to give the files away", got)
	}
	r.Before = &snapshot.Owner{GID: 7}
	if got := ownerWarning(r); got != "" {
		t.Errorf("%q, want nothing for the same user", got)
	}
}
