package snapshot

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/etcdkit/etcdkit/internal/store"
)

// Schema is the version of the manifest's format that this program writes. A
// reader refuses a manifest of a later one.
const Schema = 1

// maxManifest bounds what is read as a manifest.
const maxManifest = 1 << 20

// Manifest describes a backup. It is written last and never changed: a backup
// exists when its manifest does.
type Manifest struct {
	Schema         int       `json:"schema"`
	Name           string    `json:"name"`
	Data           string    `json:"data"` // the data object's name, beside the manifest
	CreatedAt      time.Time `json:"createdAt"`
	ClusterID      string    `json:"clusterID"` // 16 hex digits, as are the other ids
	Lineage        string    `json:"lineage,omitempty"`
	MemberID       string    `json:"memberID"`
	MemberName     string    `json:"memberName,omitempty"`
	Endpoint       string    `json:"endpoint"`
	Quorum         bool      `json:"quorum"`
	EtcdVersion    string    `json:"etcdVersion"`
	StorageVersion string    `json:"storageVersion,omitempty"`

	// Examined tells that every page and revision was looked at when the backup
	// was taken. Manifests of earlier versions do not have it.
	Examined bool `json:"examined"`

	// Revision is known of an examined backup; of another one, these two enclose
	// it. Keys and the rest are known where the file itself was read.
	RevisionBefore int64 `json:"revisionBefore"`
	RevisionAfter  int64 `json:"revisionAfter"`
	Revision       int64 `json:"revision,omitempty"`
	// AppliedIndex is the last entry of the log that is in an examined backup.
	// Every change counts, also one that makes no revision.
	AppliedIndex    uint64  `json:"appliedIndex,omitempty"`
	Keys            *int64  `json:"keys,omitempty"`
	HashKV          *uint32 `json:"hashKV,omitempty"`
	HashRevision    int64   `json:"hashRevision,omitempty"`
	CompactRevision *int64  `json:"compactRevision,omitempty"`

	SnapshotBytes  int64             `json:"snapshotBytes"`
	SnapshotSHA256 string            `json:"snapshotSHA256"` // of the whole snapshot, as sha256sum gives it
	StoredBytes    int64             `json:"storedBytes"`
	StoredSHA256   string            `json:"storedSHA256"`
	Compression    string            `json:"compression,omitempty"`
	Recipients     []string          `json:"recipients,omitempty"`
	Labels         map[string]string `json:"labels,omitempty"`
	Keep           bool              `json:"keep,omitempty"` // no rule deletes it
	Writer         Writer            `json:"writer"`
	ToolVersion    string            `json:"toolVersion,omitempty"`
	TookSeconds    float64           `json:"tookSeconds"`

	unexamined    string // why it was not examined
	appliedBefore uint64 // what the member had applied before its snapshot
}

// Writer is the run that made a backup.
type Writer struct {
	Host string `json:"host,omitempty"`
	Run  string `json:"run"` // random, 8 hex digits
}

// earliest and latest enclose the revision of the backup.
func (m *Manifest) earliest() int64 {
	if m.Revision > 0 {
		return m.Revision
	}
	return m.RevisionBefore
}

func (m *Manifest) latest() int64 {
	if m.Revision > 0 {
		return m.Revision
	}
	return m.RevisionAfter
}

// Encrypted reports whether an identity is needed to read the data.
func (m *Manifest) Encrypted() bool { return len(m.Recipients) > 0 }

// ErrManifest tells that something is no manifest that this program can read.
var ErrManifest = errors.New("not a readable manifest")

// errLarger tells of data that is larger than its manifest says. It is not read on:
// a small object may become a large one.
var errLarger = errors.New("it is larger than its manifest says")

// bound reads a snapshot no further than the manifest says, if there is one.
func (m *Manifest) bound(r io.Reader) io.Reader {
	if m == nil {
		return r
	}
	return &bounded{src: r, left: m.SnapshotBytes}
}

// bounded fails at the first byte beyond.
type bounded struct {
	src  io.Reader
	left int64
}

func (b *bounded) Read(p []byte) (int, error) {
	n, err := b.src.Read(p[:min(int64(len(p)), b.left+1)])
	if b.left -= int64(n); b.left < 0 {
		b.left = 0
		return n - 1, fmt.Errorf("%w: %w", ErrIncomplete, errLarger)
	}
	return n, err
}

// parseManifest reads a manifest and checks what the rest relies on.
func parseManifest(raw []byte) (*Manifest, error) {
	var m Manifest
	if err := json.Unmarshal(raw, &m); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrManifest, err)
	}
	switch {
	case m.Schema > Schema:
		return nil, fmt.Errorf("%w: its format %d is newer than this program's %d", ErrManifest, m.Schema, Schema)
	case m.Schema < 1, m.Name == "", m.Data == "", m.CreatedAt.IsZero(), m.StoredBytes <= 0, m.SnapshotBytes <= 0, len(m.StoredSHA256) != 64, len(m.SnapshotSHA256) != 64:
		return nil, fmt.Errorf("%w: fields are missing", ErrManifest)
	}
	return &m, nil
}

// readSmall reads a small object whole, again where a disk or a network file
// system fails in a way that may pass.
func readSmall(ctx context.Context, s store.Store, key string) (raw []byte, err error) {
	const tries, wait = 3, 100 * time.Millisecond
	for try := range tries {
		raw, err = readOnce(ctx, s, key)
		if err == nil || !store.Passing(err) || try == tries-1 {
			return raw, err
		}
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-time.After(wait << try):
		}
	}
	return raw, err
}

func readOnce(ctx context.Context, s store.Store, key string) ([]byte, error) {
	return readWhole(ctx, s, key, maxManifest)
}

// readWhole reads an object of at most limit bytes.
func readWhole(ctx context.Context, s store.Store, key string, limit int64) ([]byte, error) {
	body, size, err := s.Get(ctx, key)
	if err != nil {
		return nil, err
	}
	if size > limit {
		return nil, errors.Join(tooLarge(key, limit), body.Close())
	}
	raw, err := io.ReadAll(io.LimitReader(body, limit+1))
	if err == nil && int64(len(raw)) > limit { // the store told another size
		err = tooLarge(key, limit)
	}
	return raw, errors.Join(err, body.Close())
}

func tooLarge(key string, limit int64) error {
	return fmt.Errorf("%w: %s has more than %d bytes", ErrManifest, key, limit)
}

// writeJSON stores a value as an indented JSON object.
func writeJSON(ctx context.Context, s store.Store, key string, v any) error {
	raw, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	_, err = s.Put(ctx, key, bytes.NewReader(append(raw, '\n')), store.PutOptions{Size: int64(len(raw))})
	return err
}

// setAppliedIndex notes the last entry of the log that is in the snapshot. The
// file names the last one that wrote something; entries up to those applied
// before the snapshot, such as that of an election, wrote nothing.
func (m *Manifest) setAppliedIndex(inFile uint64) { m.AppliedIndex = max(inFile, m.appliedBefore) }
