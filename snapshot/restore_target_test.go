package snapshot_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/etcdkit/etcdkit/snapshot"
)

func TestAnEmptyTargetOfEveryKindIsAccepted(t *testing.T) {
	t.Parallel()
	b := kubernetes(t)
	for name, prepare := range map[string]func(dir string) error{
		"that does not exist":                             func(string) error { return nil },
		"that is an empty directory (etcd-io/etcd#11618)": func(dir string) error { return os.Mkdir(dir, 0o755) },
		"that is a fresh mount point":                     func(dir string) error { return os.MkdirAll(filepath.Join(dir, "lost+found"), 0o700) },
		"with what a killed restore left": func(dir string) error {
			stage := filepath.Join(dir, ".etcdkit-restore-0badcafe")
			return errors.Join(os.MkdirAll(stage, 0o700), os.WriteFile(filepath.Join(stage, "in-use"), nil, 0o600))
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "data")
			if err := prepare(dir); err != nil {
				t.Fatal(err)
			}
			restoreTo(t, b, single(dir))
			if stages, _ := filepath.Glob(filepath.Join(dir, ".etcdkit-restore-*")); len(stages) != 0 {
				t.Errorf("left behind: %v", stages)
			}
			info, err := os.Stat(filepath.Join(dir, "member", "snap", "db"))
			if err != nil || info.Mode().Perm() != 0o600 {
				t.Errorf("database: %v, %v; want mode 0600", info, err)
			}
		})
	}
}

// etcd-io/etcd#11618: a directory that is not empty must stay as it is.
func TestATargetWithSomethingInItIsRefused(t *testing.T) {
	t.Parallel()
	for name, file := range map[string]string{"a member": "member/snap/db", "a stranger's file": "notes.txt"} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, filepath.FromSlash(file))
			if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte("x"), 0o600)); err != nil {
				t.Fatal(err)
			}
			_, err := snapshot.Restore(t.Context(), sourceOf(kubernetes(t)), single(dir))
			if !errors.Is(err, snapshot.ErrNotEmpty) {
				t.Errorf("restore: %v, want a refusal", err)
			}
			if b, _ := os.ReadFile(path); string(b) != "x" {
				t.Error("the file changed")
			}
		})
	}
}

// The log may be anywhere, however the two directories are written.
func TestTheLogGoesWhereItIsWanted(t *testing.T) {
	t.Parallel()
	b := kubernetes(t)
	for name, tc := range map[string]struct {
		wal     string // DIR is the data directory
		refused bool
	}{
		"in the member directory":                 {wal: "DIR/member/wal"},
		"there, written in another way":           {wal: "DIR/../data/./member/wal"},
		"there, under another name":               {wal: "DIR/member/logs/wal"},
		"beside the member directory":             {wal: "DIR/wal"},
		"outside of the data directory":           {wal: "DIR/../wal"},
		"where the member directory is to be":     {wal: "DIR/member", refused: true},
		"where the database is to be":             {wal: "DIR/member/snap", refused: true},
		"in the place of the data directory":      {wal: "DIR", refused: true},
		"in the place of it, in another spelling": {wal: "DIR/member/..", refused: true},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "data")
			opts := single(dir)
			opts.WALDir = strings.Replace(tc.wal, "DIR", dir, 1)
			if tc.refused {
				_, err := snapshot.Restore(t.Context(), sourceOf(b), opts)
				if _, left := os.Stat(dir); err == nil || !errors.Is(left, os.ErrNotExist) {
					t.Errorf("restore: %v, stat of the target %v; want a refusal and nothing left", err, left)
				}
				return
			}
			restoreTo(t, b, opts)
			opts.MoveAside = true
			r := restoreTo(t, b, opts)
			if logs, err := filepath.Glob(filepath.Join(opts.WALDir, "*.wal")); err != nil || len(logs) != 1 || len(r.MovedTo) == 0 {
				t.Errorf("logs %v, %v, moved %v; want one log, and the one before moved aside", logs, err, r.MovedTo)
			}
			if stages, _ := filepath.Glob(filepath.Join(dir, ".etcdkit-restore-*")); len(stages) != 0 {
				t.Errorf("left behind: %v", stages)
			}
			if _, err := os.Stat(filepath.Join(dir, "member", "snap", "db")); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestAMemberCanBeMovedAside(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	first := restoreTo(t, kubernetes(t), single(dir))
	opts := single(dir)
	opts.MoveAside, opts.Token = true, "another"
	second := restoreTo(t, kubernetes(t), opts)
	if len(second.MovedTo) != 1 || first.ClusterID == second.ClusterID {
		t.Fatalf("moved %v, cluster %x after %x", second.MovedTo, second.ClusterID, first.ClusterID)
	}
	if _, err := os.Stat(filepath.Join(second.MovedTo[0], "snap", "db")); err != nil {
		t.Errorf("the old member: %v", err)
	}
}

func TestAWriteAheadLogOfItsOwnPlace(t *testing.T) {
	t.Parallel()
	dir, wal := filepath.Join(t.TempDir(), "d"), filepath.Join(t.TempDir(), "wal")
	opts := single(dir)
	opts.WALDir = wal
	// What a killed restore left in both places.
	stage := filepath.Join(dir, ".etcdkit-restore-0badcafe")
	log := filepath.Join(filepath.Dir(wal), filepath.Base(stage))
	if err := errors.Join(os.MkdirAll(stage, 0o700), os.MkdirAll(filepath.Join(log, "wal"), 0o700),
		os.WriteFile(filepath.Join(stage, "in-use"), nil, 0o600), os.WriteFile(filepath.Join(log, "in-use"), nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	restoreTo(t, kubernetes(t), opts)
	if segments, _ := filepath.Glob(filepath.Join(wal, "*.wal")); len(segments) != 1 {
		t.Errorf("segments %v, want one", segments)
	}
	if _, err := os.Stat(log); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("stat of a killed restore's log: %v, want it gone", err)
	}
	opts.DataDir = filepath.Join(t.TempDir(), "other")
	if _, err := snapshot.Restore(t.Context(), sourceOf(kubernetes(t)), opts); !errors.Is(err, snapshot.ErrNotEmpty) {
		t.Errorf("a second restore to that place: %v, want a refusal", err)
	}
}
