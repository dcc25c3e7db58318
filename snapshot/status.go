package snapshot

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"

	"github.com/etcdkit/etcdkit/internal/mvccdb"
	"github.com/etcdkit/etcdkit/internal/regular"
)

// Integrity is what is known about the bytes of a file.
type Integrity string

// Degrees of integrity.
const (
	Proven  Integrity = "proven"  // the SHA-256 that etcd sent along, or a manifest's, matches
	Unknown Integrity = "unknown" // there is none to compare with
	Broken  Integrity = "broken"  // it does not match, or the structure is damaged
)

// FileStatus is what Status finds out about a file.
type FileStatus struct {
	*mvccdb.Report
	Path      string
	Integrity Integrity
	Reason    string // of the integrity, in words
}

// Status reads a whole database file once and judges it: every page, every
// revision, and the SHA-256 at its end or in the manifest beside it.
func Status(ctx context.Context, f *File, progress func(done, total int64)) (*FileStatus, error) {
	report, err := f.Check(ctx, mvccdb.CheckOptions{Progress: progress})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", f.Path, err)
	}
	s := &FileStatus{Report: report, Path: f.Path}
	s.Integrity, s.Reason = s.judge()
	return s, nil
}

func (s *FileStatus) judge() (Integrity, string) {
	manifest, known := manifestSum(s.Path)
	switch {
	case s.Trailer == mvccdb.TrailerBad:
		return Broken, "the SHA-256 at the end does not match: the file was changed or damaged"
	case known && manifest != s.fileSum():
		return Broken, "the SHA-256 in the manifest does not match: the file was changed or damaged"
	case s.DamageCount > 0:
		return Broken, (&DamageError{First: s.Damage[0], Count: s.DamageCount}).Error()
	case s.Trailer == mvccdb.TrailerGood:
		return Proven, "the SHA-256 at the end matches"
	case known:
		return Proven, "the SHA-256 in the manifest matches"
	case s.FileSize%mvccdb.TrailerUnit != 0:
		return Broken, fmt.Sprintf("%d bytes are left over at the end: the SHA-256 there was cut off, or something was added", s.FileSize%mvccdb.TrailerUnit)
	}
	return Unknown, "there is no SHA-256 to compare with, neither at the end nor in a manifest"
}

// fileSum returns the SHA-256 of all bytes of a file without a trailer. With a
// good one it is of no interest: the trailer is proof enough.
func (s *FileStatus) fileSum() string {
	if s.Trailer == mvccdb.TrailerGood {
		return ""
	}
	return hex.EncodeToString(s.SHA256[:])
}

// manifestSum returns the SHA-256 of the snapshot that the manifest beside a
// file gives. It counts only for a file without a trailer.
func manifestSum(path string) (sum string, known bool) {
	info, err := os.Stat(path)
	if err != nil || mvccdb.HasTrailer(info.Size()) {
		return "", false
	}
	raw, err := regular.ReadFile(path+manifestSuffix, maxManifest)
	if err != nil {
		return "", false
	}
	var m struct {
		SnapshotSHA256 string `json:"snapshotSHA256"`
	}
	if err := json.Unmarshal(raw, &m); err != nil || m.SnapshotSHA256 == "" {
		return "", false
	}
	return m.SnapshotSHA256, true
}
