package snapshot_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"filippo.io/age"
	"github.com/minio/minio-go/v7"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/etcdkit/etcdkit/internal/embedded"
	"github.com/etcdkit/etcdkit/internal/mvccdb"
	"github.com/etcdkit/etcdkit/internal/store"
	"github.com/etcdkit/etcdkit/internal/testing/etcdtest"
	"github.com/etcdkit/etcdkit/internal/testing/s3test"
	"github.com/etcdkit/etcdkit/snapshot"
)

// cluster starts members and writes some keys.
func cluster(t *testing.T, members, keys int) *embedded.Cluster {
	t.Helper()
	c := etcdtest.Start(t, embedded.Options{Members: members})
	write(t, c.Endpoints()[0], keys)
	return c
}

func write(t *testing.T, endpoint string, keys int) {
	t.Helper()
	client, err := dial(t.Context(), endpoint)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	for i := range keys {
		if _, err := client.(*clientv3.Client).Put(t.Context(), fmt.Sprintf("/key/%04d", i), strings.Repeat("v", 100+i)); err != nil {
			t.Fatal(err)
		}
	}
}

func dial(_ context.Context, endpoint string) (snapshot.Client, error) {
	return clientv3.New(clientv3.Config{Endpoints: []string{endpoint}})
}

func source(endpoints ...string) snapshot.Source {
	return snapshot.Source{Endpoints: endpoints, Dial: dial}
}

// opener opens repositories; those in buckets at endpoint.
func opener(endpoint string, ids ...age.Identity) snapshot.OpenOptions {
	return snapshot.OpenOptions{Identities: ids, OpenStore: func(ctx context.Context, location string) (store.Store, error) {
		return store.Open(ctx, location, s3Options(endpoint))
	}}
}

func s3Options(endpoint string) store.S3Options {
	return store.S3Options{Endpoint: endpoint, RetryFor: time.Second, StallTimeout: 10 * time.Second}
}

// readAll opens a source and reads the snapshot in it.
func readAll(t *testing.T, source string, opts snapshot.OpenOptions) ([]byte, *snapshot.Opened, error) {
	t.Helper()
	o, err := snapshot.OpenSource(t.Context(), source, opts)
	if err != nil {
		return nil, nil, err
	}
	data, err := io.ReadAll(o)
	return data, o, errors.Join(err, o.Close())
}

// keysIn counts the live keys of a snapshot, having checked it.
func keysIn(t *testing.T, data []byte) int {
	t.Helper()
	db, err := mvccdb.Open(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	report, err := db.Check(t.Context(), mvccdb.CheckOptions{})
	if err != nil || !report.Good() || report.Trailer != mvccdb.TrailerGood {
		t.Fatalf("check: %v, trailer %v, damage %v", err, report.Trailer, report.Damage)
	}
	return report.LiveKeys
}

func TestSavedBackupsComeBackFromEveryKindOfTarget(t *testing.T) {
	const keys = 50
	server := s3test.Start(t, s3test.Options{})
	server.Setenv(t)
	c := cluster(t, 1, keys)
	identity, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	locations := map[string]string{"folder": filepath.Join(t.TempDir(), "repo") + "/", "s3": "s3://" + server.Bucket(t) + "/prod/"}
	for where, location := range locations {
		for how, codec := range map[string]snapshot.Codec{
			"plain":                    {},
			"compressed":               {Compression: "zstd"},
			"encrypted":                {Recipients: []age.Recipient{identity.Recipient()}},
			"compressed and encrypted": {Compression: "zstd:7", Recipients: []age.Recipient{identity.Recipient()}},
		} {
			t.Run(where+" "+how, func(t *testing.T) {
				location := location + strings.ReplaceAll(how, " ", "-") + "/"
				repo, err := store.Open(t.Context(), location, s3Options(server.URL))
				if err != nil {
					t.Fatal(err)
				}
				saved, err := snapshot.Save(t.Context(), source(c.Endpoints()...), repo, snapshot.SaveOptions{Codec: codec, Labels: map[string]string{"env": "test"}})
				if err != nil {
					t.Fatal(err)
				}
				for _, name := range []string{"", "latest", saved.Manifest.Name, saved.Manifest.ClusterID + "/latest"} {
					data, o, err := readAll(t, location+name, opener(server.URL, identity))
					if err != nil {
						t.Fatalf("read %q: %v", name, err)
					}
					if got := keysIn(t, data); got != keys {
						t.Errorf("%q holds %d keys, want %d", name, got, keys)
					}
					if sum := fmt.Sprintf("%x", sha256.Sum256(data)); sum != o.Manifest.SnapshotSHA256 || int64(len(data)) != o.Manifest.SnapshotBytes {
						t.Errorf("%q: %d bytes, SHA-256 %s; the manifest says %d, %s", name, len(data), sum, o.Manifest.SnapshotBytes, o.Manifest.SnapshotSHA256)
					}
				}
			})
		}
	}
}

func TestAFileIsTheBareSnapshotWithItsManifestBeside(t *testing.T) {
	t.Parallel()
	c := cluster(t, 1, 3)
	file := filepath.Join(t.TempDir(), "backup.db")
	saved, err := snapshot.SaveFile(t.Context(), source(c.Endpoints()...), file, snapshot.SaveOptions{})
	if err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(file)
	if err != nil || keysIn(t, raw) != 3 {
		t.Errorf("the file: %v", err)
	}
	data, o, err := readAll(t, file, opener(""))
	if err != nil || !bytes.Equal(data, raw) || o.Manifest == nil || o.Manifest.Name != saved.Manifest.Name {
		t.Errorf("open: %v", err)
	}
}

// untilVersionsAreSet waits for what a new cluster writes by itself a moment
// after its start: the versions of the cluster and of its storage.
func untilVersionsAreSet(t *testing.T, c *embedded.Cluster) {
	t.Helper()
	client := etcdtest.Client(t, c.Endpoints()...)
	etcdtest.Until(t, "the versions are set", func(ctx context.Context) bool {
		status, err := client.Status(ctx, c.Endpoints()[0])
		return err == nil && status.StorageVersion == "3.7.0" // 3.5.0 comes before
	})
}

// etcd-io/etcd#13070: what a restore needs to know is kept with the backup.
func TestTheManifestTellsVersionClusterMemberAndRevision(t *testing.T) {
	t.Parallel()
	c := cluster(t, 1, 5)
	untilVersionsAreSet(t, c)
	repo := store.NewFolder(t.TempDir())
	saved, err := snapshot.Save(t.Context(), source(c.Endpoints()...), repo, snapshot.SaveOptions{Host: "node-1", ToolVersion: "test"})
	if err != nil {
		t.Fatal(err)
	}
	all, err := snapshot.List(t.Context(), repo, "")
	if err != nil || len(all) != 1 {
		t.Fatalf("list: %d backups, %v", len(all), err)
	}
	m := all[0].Manifest
	if m.EtcdVersion != "3.7.3" || m.StorageVersion != "3.7.0" || m.MemberID != fmt.Sprintf("%016x", c.Members[0].ID()) || m.MemberName != "m1" ||
		m.RevisionBefore != 6 || m.RevisionAfter != 6 || !m.Quorum || m.Lineage == "" || m.Writer.Host != "node-1" || m.ClusterID != saved.Manifest.ClusterID {
		t.Errorf("manifest: %+v", m)
	}
	if !all[0].Good() {
		t.Errorf("the backup is not good: %s", all[0].Problem)
	}
}

// And with the object, for those who look at the bucket by other means.
func TestTheObjectTellsWhereItIsFrom(t *testing.T) {
	c := cluster(t, 1, 5)
	server := s3test.Start(t, s3test.Options{})
	server.Setenv(t)
	bucket := server.Bucket(t)
	repo, err := store.Open(t.Context(), "s3://"+bucket+"/", s3Options(server.URL))
	if err != nil {
		t.Fatal(err)
	}
	saved, err := snapshot.Save(t.Context(), source(c.Endpoints()...), repo, snapshot.SaveOptions{})
	if err != nil {
		t.Fatal(err)
	}
	m := saved.Manifest
	info, err := server.Client(t).StatObject(t.Context(), bucket, m.ClusterID+"/"+m.Data, minio.StatObjectOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"etcd-version": "3.7.3", "etcd-cluster-id": m.ClusterID, "etcd-member-id": m.MemberID, "etcd-revision-before": "6", "etcdkit-name": m.Name,
	} {
		if got := info.Metadata.Get("X-Amz-Meta-" + name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
}

// etcd-io/etcd#11695: several endpoints, and a dead one among them.
func TestSeveralEndpointsAreAccepted(t *testing.T) {
	t.Parallel()
	c := cluster(t, 3, 3)
	repo := store.NewFolder(t.TempDir())
	endpoints := append([]string{"http://127.0.0.1:1"}, c.Endpoints()...)
	saved, err := snapshot.Save(t.Context(), source(endpoints...), repo, snapshot.SaveOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if len(saved.Failed) != 1 || saved.Failed[0].Endpoint != endpoints[0] {
		t.Errorf("failed: %v, want the dead endpoint", saved.Failed)
	}
	client, err := dial(t.Context(), saved.Manifest.Endpoint)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	status, err := client.Status(t.Context(), saved.Manifest.Endpoint)
	if err != nil || status.Leader == status.Header.MemberId {
		t.Errorf("taken from the leader %s though followers serve: %v", saved.Manifest.Endpoint, err)
	}
}

// gardener/etcd-backup-restore#749: a snapshot without its hash is no snapshot.
func TestDamageIsFoundWhileReading(t *testing.T) {
	t.Parallel()
	c := cluster(t, 1, 3)
	var b bytes.Buffer
	if _, err := snapshot.SaveTo(t.Context(), source(c.Endpoints()...), &b, snapshot.SaveOptions{}); err != nil {
		t.Fatal(err)
	}
	whole := b.Bytes()
	flipped := bytes.Clone(whole)
	flipped[len(flipped)/2] ^= 1
	for name, data := range map[string][]byte{
		"trailer cut":        whole[:len(whole)-32],
		"cut in the trailer": whole[:len(whole)-5],
		"cut in the middle":  whole[:len(whole)/2],
		"empty":              {},
		"one bit flipped":    flipped,
		"a text file":        []byte("hello, I am no snapshot\n"),
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "x.db")
			if err := os.WriteFile(file, data, 0o600); err != nil {
				t.Fatal(err)
			}
			if _, _, err := readAll(t, file, opener("")); !errors.Is(err, snapshot.ErrIncomplete) {
				t.Errorf("got %v, want ErrIncomplete", err)
			}
		})
	}
}

func TestAnEncryptedBackupNeedsItsIdentity(t *testing.T) {
	t.Parallel()
	c := cluster(t, 1, 3)
	right, _ := age.GenerateX25519Identity()
	wrong, _ := age.GenerateX25519Identity()
	file := filepath.Join(t.TempDir(), "x.db.age")
	opts := snapshot.SaveOptions{Codec: snapshot.Codec{Recipients: []age.Recipient{right.Recipient()}}}
	if _, err := snapshot.SaveFile(t.Context(), source(c.Endpoints()...), file, opts); err != nil {
		t.Fatal(err)
	}
	for name, ids := range map[string][]age.Identity{"none": nil, "another": {wrong}} {
		if _, _, err := readAll(t, file, opener("", ids...)); !errors.Is(err, snapshot.ErrNoIdentity) {
			t.Errorf("%s: %v, want ErrNoIdentity", name, err)
		}
	}
}

func TestTwoSavesAtTheSameMomentBothSucceed(t *testing.T) {
	t.Parallel()
	c := cluster(t, 1, 3)
	repo := store.NewFolder(t.TempDir())
	errs := make(chan error)
	for range 2 {
		go func() {
			_, err := snapshot.Save(t.Context(), source(c.Endpoints()...), repo, snapshot.SaveOptions{})
			errs <- err
		}()
	}
	for range 2 {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
	if all, err := snapshot.List(t.Context(), repo, ""); err != nil || len(all) != 2 {
		t.Errorf("%d backups, %v; want 2", len(all), err)
	}
}
