//go:build full

package snapshot_test

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/etcdkit/etcdkit/internal/testing/etcdtest"
	"github.com/etcdkit/etcdkit/internal/testing/reference"
	"github.com/etcdkit/etcdkit/snapshot"
)

// A restored directory boots in the versions that the restore names, and in an
// older one after migrate.
func TestARestoredMemberBootsInTheVersionsThatAreNamed(t *testing.T) {
	for _, wrote := range reference.Servers() {
		from := etcdtest.StartServers(t, etcdtest.ServerOptions{Program: wrote})
		c := etcdtest.Client(t, from.Endpoints()...)
		etcdtest.Fill(t, c, "k/", 100, 10)
		etcdtest.Until(t, "the version of the cluster", func(context.Context) bool {
			b := take(t, c)
			r := restoreTo(t, b, single(filepath.Join(t.TempDir(), "d")))
			return strings.HasPrefix(wrote.Version(), strings.TrimSuffix(r.Report.State.ClusterVersion, ".0"))
		})
		b := take(t, c)
		for _, boots := range reference.Servers() {
			t.Run(string(wrote)+" in "+string(boots), func(t *testing.T) {
				to := etcdtest.NewServers(t, etcdtest.ServerOptions{Program: boots})
				r := restoreTo(t, b, memberOf(to, 0))
				target := strings.Join(strings.Split(boots.Version(), ".")[:2], ".")
				named := slices.Contains(snapshot.BootsIn(r.Report.State), target)
				if !named {
					migrate(t, to.Members[0].DataDir, target)
				}
				to.Start()
				if got := everything(t, etcdtest.Client(t, to.Endpoints()...)); len(got) != 100 {
					t.Errorf("%d keys, want 100", len(got))
				}
				t.Logf("boots; named: %t", named)
			})
		}
	}
}

func migrate(t *testing.T, dir, target string) {
	t.Helper()
	v, err := snapshot.ParseTarget(target)
	fail(t, err)
	m, err := snapshot.Migrate(t.Context(), snapshot.MigrateOptions{DataDir: dir, Target: v, Bootable: true, Wait: lockWait})
	fail(t, err)
	t.Logf("migrated: %+v", m)
}

// A member that has run has entries in its log on which an older version
// panics: migrate refuses, and the way that it names leads to a member that
// boots.
func TestMigratingAMemberThatHasRunGoesThroughARestore(t *testing.T) {
	from := etcdtest.StartServers(t, etcdtest.ServerOptions{Program: reference.Etcd37})
	etcdtest.Fill(t, etcdtest.Client(t, from.Endpoints()...), "k/", 100, 10)
	from.Members[0].Stop()
	v, err := snapshot.ParseTarget("3.6")
	fail(t, err)
	_, err = snapshot.Migrate(t.Context(), snapshot.MigrateOptions{DataDir: from.Members[0].DataDir, Target: v, Bootable: true, Wait: lockWait})
	if err == nil || errors.Is(err, snapshot.ErrLocked) {
		t.Fatalf("migrated a member whose log sets version 3.7: %v", err)
	}
	to := etcdtest.NewServers(t, etcdtest.ServerOptions{Program: reference.Etcd36})
	restoreDir(t, from.Members[0], to, 0)
	migrate(t, to.Members[0].DataDir, "3.6")
	to.Start()
	if got := everything(t, etcdtest.Client(t, to.Endpoints()...)); len(got) != 100 {
		t.Errorf("%d keys, want 100", len(got))
	}
}
