package snapshot

import "time"

// Result is what a check found.
type Result string

// The results.
const (
	ResultOK      Result = "ok"
	ResultBad     Result = "bad"
	ResultUnknown Result = "unknown" // it could not be checked
)

// Level is how deep a verification went.
type Level string

// The levels, each with those before it.
const (
	LevelStored   Level = "stored"   // the stored bytes are those that were written
	LevelDecoded  Level = "decoded"  // the snapshot is whole and every revision in it readable
	LevelRestored Level = "restored" // an etcd booted from it serves what it should
)

// Verification is the outcome of one verification of one backup.
type Verification struct {
	Name   string    `json:"name"`
	Result Result    `json:"result"`
	OK     bool      `json:"ok"`              // result is ok
	Level  Level     `json:"level,omitempty"` // the deepest one reached
	At     time.Time `json:"at"`
	Checks []Check   `json:"checks"`

	// What the file itself says, from level decoded on.
	Revision        int64   `json:"revision,omitempty"`
	Keys            *int64  `json:"keys,omitempty"`
	HashKV          *uint32 `json:"hashKV,omitempty"`
	CompactRevision *int64  `json:"compactRevision,omitempty"`
	ToolVersion     string  `json:"toolVersion,omitempty"`
}

// Check is one thing that a verification looked at.
type Check struct {
	Name        string  `json:"name"`
	Result      Result  `json:"result"`
	Detail      string  `json:"detail,omitempty"`
	TookSeconds float64 `json:"tookSeconds"`
}
