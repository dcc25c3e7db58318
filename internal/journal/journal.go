// Package journal notes on this host what changed a cluster: which command, on
// which keys and members, when, by whom and with what end; never a value.
package journal

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// File is the journal's name in the state folder.
const File = "journal.jsonl"

// Entry is one line: the beginning of a command, or its end.
type Entry struct {
	Time        time.Time `json:"time"`
	Run         string    `json:"run"`   // the same for beginning and end
	Event       string    `json:"event"` // begin, end
	Command     string    `json:"command"`
	Arguments   []string  `json:"arguments,omitempty"` // keys and members, never values
	Flags       []string  `json:"flags,omitempty"`     // names of those given, never values
	Endpoints   []string  `json:"endpoints,omitempty"`
	User        string    `json:"user,omitempty"`
	PID         int       `json:"pid"`
	ExitCode    *int      `json:"exitCode,omitempty"`
	TookSeconds float64   `json:"tookSeconds,omitempty"`
}

// The events.
const (
	Begin = "begin"
	End   = "end"
)

// Append adds an entry to the journal in dir, which is created for its owner
// alone. A line is written at once, so that runs side by side do not mix.
func Append(dir string, e Entry) (err error) {
	line, err := json.Marshal(e)
	if err != nil {
		return fmt.Errorf("write journal: %w", err)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("write journal: %w", err)
	}
	f, err := os.OpenFile(filepath.Join(dir, File), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("write journal: %w", err)
	}
	_, err = f.Write(append(line, '\n'))
	if err = errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("write journal: %w", err)
	}
	return nil
}
