// Package journal notes on this host what changed a cluster: which command, on
// which keys and members, when, by whom and with what end; never a value.
package journal

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/etcdkit/etcdkit/internal/dirfd"
	"github.com/etcdkit/etcdkit/internal/scratch"
)

const (
	// File is the journal's name in the state folder.
	File = "journal.jsonl"
	// OldFile is the name that a full journal gets; what had it before is
	// replaced.
	OldFile = "journal.old.jsonl"
	// MaxSize is the size of a full journal, in bytes: some 20,000 commands.
	MaxSize = 8 << 20
)

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
// alone. A line is written at once, so that runs side by side do not mix. What
// has the journal's name but is a link, no regular file, or has a second name is
// left alone and reported: a line would end up in somebody else's file.
func Append(dir string, e Entry) error {
	line, err := json.Marshal(e)
	if err == nil {
		err = appendLine(dir, append(line, '\n'))
	}
	if err != nil {
		return fmt.Errorf("write journal: %w", err)
	}
	return nil
}

func appendLine(dir string, line []byte) (err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	folder, err := dirfd.Open(dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, folder.Close()) }()
	f, info, err := open(folder)
	if err != nil {
		return err
	}
	if info.Size+int64(len(line)) > MaxSize {
		if err := f.Close(); err != nil {
			return err
		}
		if err := rotate(folder, info); err != nil {
			return err
		}
		if f, _, err = open(folder); err != nil {
			return err
		}
	}
	_, err = f.Write(line)
	return errors.Join(err, f.Close())
}

// open opens the journal for a line at its end.
func open(folder *dirfd.Dir) (*os.File, dirfd.Info, error) {
	f, err := folder.OpenFile(File, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, dirfd.Info{}, err
	}
	info, err := dirfd.Describe(f)
	if err == nil && info.Links > 1 {
		err = fmt.Errorf("%s has %d names; it may be another program's file", f.Name(), info.Links)
	}
	if err != nil {
		return nil, info, errors.Join(err, f.Close())
	}
	return f, info, nil
}

// rotate renames the journal that full describes to OldFile, unless another run
// has done so or is about to. Whoever has it open writes its line there.
func rotate(folder *dirfd.Dir, full dirfd.Info) error {
	lock, err := scratch.Open(folder, File)
	if err != nil {
		return nil //nolint:nilerr // the journal grows a little more, and the next run tries again
	}
	locked, err := dirfd.Describe(lock.File)
	if err == nil && locked.Same(full) {
		err = folder.Rename(File, folder, OldFile)
	}
	return errors.Join(err, lock.Close())
}
