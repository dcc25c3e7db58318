package disk

import (
	"errors"
	"fmt"
	"strings"

	"github.com/etcdkit/etcdkit/internal/hint"
)

// ErrEtcdRunning says that an etcd keeps its data on the filesystem that would
// be loaded.
var ErrEtcdRunning = errors.New("a running etcd keeps its data there")

// Neighbour is a running etcd whose data is on the filesystem measured.
type Neighbour struct {
	PID  int    `json:"pid"`  // 0 where only its lock was seen
	Data string `json:"data"` // a file or folder of its data
	// Args is its command line, for finding out where it serves /metrics.
	Args []string `json:"-"`
	// Metrics are its own measurements, nil where they could not be read.
	Metrics *EtcdMetrics `json:"metrics,omitempty"`
}

// Flag returns the value of one of the neighbour's command line flags.
func (n Neighbour) Flag(name string) string {
	for i, arg := range n.Args {
		arg, ok := strings.CutPrefix(arg, "-")
		if !ok {
			continue
		}
		arg = strings.TrimPrefix(arg, "-")
		if v, ok := strings.CutPrefix(arg, name+"="); ok {
			return v
		}
		if arg == name && i+1 < len(n.Args) {
			return n.Args[i+1]
		}
	}
	return ""
}

// String says what was seen of the etcd.
func (n Neighbour) String() string {
	if n.PID == 0 {
		return "a process that could not be looked into holds the lock of " + n.Data
	}
	return fmt.Sprintf("process %d has %s open", n.PID, n.Data)
}

// guard refuses to load a disk that a running etcd lives on.
func guard(found []Neighbour, opts Options) error {
	if len(found) == 0 || opts.Gentle || opts.Force {
		return nil
	}
	err := fmt.Errorf("%w: %s", ErrEtcdRunning, found[0])
	return hint.With(err, "--gentle writes little: at most %d times a second and a fifth of the time, and it stops at a sync slower than %s", gentleRate, gentleBound)
}
