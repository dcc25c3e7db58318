package embedded

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"strconv"

	"github.com/etcdkit/etcdkit/internal/dirfd"
	"github.com/etcdkit/etcdkit/internal/scratch"
)

// Ports are taken from below the range that operating systems hand out to
// outgoing connections, so that none can be lost to one of those between being
// found free and being used.
const (
	firstPort = 20000
	lastPort  = 32000
	portTries = 200
)

// A Port is a free loopback port that is kept for this process: two servers
// that are started at the same moment, in whatever processes, never choose the
// same.
type Port struct {
	port int
	lock *scratch.Lock
	dir  *dirfd.Dir // of the lock
}

// ReservePort finds a free loopback port and keeps it until Release.
func ReservePort() (*Port, error) {
	dir, err := dirfd.Open(os.TempDir())
	if err != nil {
		return nil, fmt.Errorf("find a free loopback port: %w", err)
	}
	for range portTries {
		port := firstPort + rand.IntN(lastPort-firstPort)
		var lock *scratch.Lock
		if lock, err = scratch.OpenOrCreate(dir, fmt.Sprintf("etcdkit-port-%d.lock", port)); err != nil {
			continue // taken, perhaps by another user
		}
		if free(port) {
			return &Port{port: port, lock: lock, dir: dir}, nil
		}
		_ = lock.Remove()
	}
	if errors.Is(err, scratch.ErrLocked) || err == nil {
		err = errors.New("every port tried was in use")
	}
	return nil, errors.Join(fmt.Errorf("find a free loopback port: %w", err), dir.Close())
}

// free reports whether nobody listens on the port.
func free(port int) bool {
	l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		return false
	}
	return l.Close() == nil
}

// Addr returns the port with the loopback address, as host:port.
func (r *Port) Addr() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(r.port)) }

// Release gives the port back.
func (r *Port) Release() {
	_ = r.lock.Remove()
	_ = r.dir.Close()
}
