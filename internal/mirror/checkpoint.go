package mirror

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/etcdkit/etcdkit/internal/regular"
	"github.com/etcdkit/etcdkit/internal/wholefile"
)

// savePause is the least time between two writes of the checkpoint. What a
// crash loses of it is only copied again.
const savePause = time.Second

// checkpoint is how far a mirror has come.
type checkpoint struct {
	Schema      int       `json:"schema"`
	Source      string    `json:"sourceClusterID"`
	Destination string    `json:"destinationClusterID"`
	Prefix      string    `json:"prefix"`
	DestPrefix  string    `json:"destPrefix"`
	Revision    int64     `json:"revision"` // of the source, copied up to and including it
	SavedAt     time.Time `json:"savedAt"`
}

func hexID(id uint64) string { return fmt.Sprintf("%016x", id) }

// maxSize bounds a checkpoint, in bytes; one has some 100.
const maxSize = 1 << 20

// readCheckpoint returns nil if there is no file yet.
func readCheckpoint(path string) (*checkpoint, error) {
	b, err := regular.ReadFile(path, maxSize)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil // no checkpoint is no error
	}
	if err != nil {
		return nil, fmt.Errorf("checkpoint: %w", err)
	}
	var c checkpoint
	if err := json.Unmarshal(b, &c); err != nil || c.Schema != 1 || c.Revision <= 0 {
		return nil, fmt.Errorf("checkpoint %s: not a checkpoint of make-mirror", path)
	}
	return &c, nil
}

// fits compares what the checkpoint belongs to with the mirror at hand.
func (c *checkpoint) fits(now checkpoint) error {
	for _, part := range []struct{ name, was, is string }{
		{"source cluster", c.Source, now.Source},
		{"destination cluster", c.Destination, now.Destination},
		{"prefix", c.Prefix, now.Prefix},
		{"destination prefix", c.DestPrefix, now.DestPrefix},
	} {
		if part.was != part.is {
			return fmt.Errorf("%w: its %s is %q, not %q", ErrCheckpoint, part.name, part.was, part.is)
		}
	}
	return nil
}

// reached notes that all up to rev is copied.
func (m *Mirror) reached(rev int64) error {
	if rev <= m.check.Revision {
		return nil
	}
	m.check.Revision = rev
	m.seen.Store(rev)
	return m.save(false)
}

// save writes the checkpoint file, which is there as a whole or as it was.
func (m *Mirror) save(now bool) error {
	if m.Checkpoint == "" || m.check.Revision == 0 || !now && time.Since(m.saved) < savePause {
		return nil
	}
	m.saved = time.Now()
	m.check.SavedAt = m.saved.UTC().Round(time.Second)
	b, err := json.MarshalIndent(m.check, "", "  ")
	if err != nil {
		return fmt.Errorf("checkpoint: %w", err)
	}
	if err := wholefile.Write(m.Checkpoint, append(b, '\n'), 0o600); err != nil {
		return fmt.Errorf("checkpoint: %w", err)
	}
	return nil
}
