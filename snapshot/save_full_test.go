//go:build full

package snapshot_test

import (
	"errors"
	"maps"
	"testing"
	"time"

	"filippo.io/age"

	"github.com/etcdkit/etcdkit/internal/store"
	"github.com/etcdkit/etcdkit/internal/testing/etcdtest"
	"github.com/etcdkit/etcdkit/internal/testing/reference"
	"github.com/etcdkit/etcdkit/internal/testing/s3test"
	"github.com/etcdkit/etcdkit/snapshot"
)

// The whole life of a backup, with every supported version of etcd: saved,
// proven by a drill, restored, and served by the version that it came from.
func TestABackupOfEveryVersionIsProvenAndRestored(t *testing.T) {
	server := s3test.Start(t, s3test.Options{})
	server.Setenv(t)
	bucket := server.Bucket(t)
	identity, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	for _, program := range reference.Servers() {
		from := etcdtest.StartServers(t, etcdtest.ServerOptions{Program: program, Members: 3})
		c := etcdtest.Client(t, from.Endpoints()...)
		etcdtest.Fill(t, c, "/registry/pods/default/p-", 500, 700)
		if _, err := c.Delete(t.Context(), "/registry/pods/default/p-000001"); err != nil {
			t.Fatal(err)
		}
		want := everything(t, c)
		for name, tc := range map[string]struct {
			location string
			codec    snapshot.Codec
		}{
			"a folder":                     {t.TempDir(), snapshot.Codec{}},
			"S3, compressed and encrypted": {"s3://" + bucket + "/" + program.Version(), snapshot.Codec{Compression: "zstd", Recipients: []age.Recipient{identity.Recipient()}}},
		} {
			t.Run(string(program)+" to "+name, func(t *testing.T) {
				open := opener(server.URL, identity)
				repo, err := open.OpenStore(t.Context(), tc.location)
				if err != nil {
					t.Fatal(err)
				}
				saved, err := snapshot.Save(t.Context(), source(from.Endpoints()...), repo, snapshot.SaveOptions{Codec: tc.codec})
				if err != nil {
					t.Fatal(err)
				}
				if m := saved.Manifest; m.EtcdVersion != program.Version() || !m.Quorum || len(saved.Failed) != 0 {
					t.Errorf("version %s, quorum %t, failed %v; want %s with quorum", m.EtcdVersion, m.Quorum, saved.Failed, program.Version())
				}
				drill(t, repo, open.Identities, len(want))

				to := etcdtest.NewServers(t, etcdtest.ServerOptions{Program: program, Members: 3})
				for i := range to.Members {
					o, err := snapshot.OpenSource(t.Context(), tc.location, open)
					if err != nil {
						t.Fatal(err)
					}
					_, err = snapshot.Restore(t.Context(), snapshot.RestoreSource{Name: o.Name, Reader: o, Size: o.Size}, memberOf(to, i))
					if err = errors.Join(err, o.Close()); err != nil {
						t.Fatal(err)
					}
				}
				to.Start()
				if got := everything(t, etcdtest.Client(t, to.Endpoints()...)); !maps.Equal(got, want) {
					t.Errorf("%d keys after the restore, want the %d that there were", len(got), len(want))
				}
			})
		}
	}
}

// drill proves the only backup of a repository.
func drill(t *testing.T, repo store.Store, ids []age.Identity, keys int) {
	t.Helper()
	v, err := snapshot.Verify(t.Context(), repo, only(t, repo), snapshot.VerifyOptions{
		Level: snapshot.LevelRestored, Identities: ids, Scratch: t.TempDir(), Now: time.Now,
	})
	if err != nil || !v.OK || v.Level != snapshot.LevelRestored || *v.Keys != int64(keys) {
		t.Errorf("drill: %+v, %v; want %d keys served", v, err, keys)
	}
}
