package snapshot

import (
	"errors"
	"testing"

	"filippo.io/age"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/etcdkit/etcdkit/internal/hint"
)

// rancher/rancher#30662: free space is looked at first. Etcd is not asked
// for a snapshot that nobody can take.
func TestAStageWithoutRoomIsRefusedBeforeAnythingIsSent(t *testing.T) {
	t.Parallel()
	c := &candidate{endpoint: "m", status: &clientv3.StatusResponse{Header: &pb.ResponseHeader{}, DbSize: 1 << 60}}
	opts, err := SaveOptions{Stage: t.TempDir()}.plan()
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.stream(t.Context(), opts, &Manifest{}, sink{}) // would fail without a client
	if !errors.Is(err, ErrNoSpace) || hint.Of(err) == "" {
		t.Errorf("got %v, want ErrNoSpace and what to do", err)
	}
}

func TestWhatAVerificationWrites(t *testing.T) {
	t.Parallel()
	identity, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	plain, packed := &Manifest{SnapshotBytes: 100}, &Manifest{SnapshotBytes: 100, Compression: "zstd"}
	secret := &Manifest{SnapshotBytes: 100, Recipients: []string{"age1"}}
	for name, tc := range map[string]struct {
		manifest   *Manifest
		file       string
		level      Level
		identities []age.Identity
		want       int64
	}{
		"a plain local file":           {plain, "f", "", nil, 0},
		"its drill":                    {plain, "f", LevelRestored, nil, 100},
		"a plain object":               {plain, "", LevelDecoded, nil, 100},
		"its drill, too":               {plain, "", LevelRestored, nil, 200},
		"the stored bytes alone":       {packed, "", LevelStored, nil, 0},
		"a compressed local file":      {packed, "f", "", nil, 100},
		"encrypted, without identity":  {secret, "f", "", nil, 0},
		"encrypted, with its identity": {secret, "f", "", []age.Identity{identity}, 100},
		"nobody knows":                 {nil, "f", LevelRestored, nil, 0},
	} {
		t.Run(name, func(t *testing.T) {
			s := subject{manifest: tc.manifest, file: tc.file}
			if got := s.scratchBytes(VerifyOptions{Level: tc.level, Identities: tc.identities}); got != tc.want {
				t.Errorf("got %d, want %d", got, tc.want)
			}
		})
	}
	s := subject{manifest: &Manifest{SnapshotBytes: 1 << 60}}
	if _, err := verify(t.Context(), s, VerifyOptions{Scratch: t.TempDir()}); !errors.Is(err, ErrNoSpace) {
		t.Errorf("verify: %v, want ErrNoSpace before anything is read", err)
	}
}
