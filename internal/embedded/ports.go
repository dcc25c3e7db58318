package embedded

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strconv"

	"go.etcd.io/etcd/client/pkg/v3/fileutil"
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
	lock *fileutil.LockedFile
}

// ReservePort finds a free loopback port and keeps it until Release.
func ReservePort() (*Port, error) {
	for range portTries {
		port := firstPort + rand.IntN(lastPort-firstPort)
		path := filepath.Join(os.TempDir(), fmt.Sprintf("etcdkit-port-%d.lock", port))
		lock, err := fileutil.TryLockFile(path, os.O_CREATE|os.O_RDWR, 0o600)
		if err != nil {
			continue // taken, perhaps by another user
		}
		r := &Port{port: port, lock: lock}
		if free(port) {
			return r, nil
		}
		r.Release()
	}
	return nil, errors.New("find a free loopback port: every port tried was in use")
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
	name := r.lock.Name()
	_ = os.Remove(name) // before the lock goes: afterwards it may be another's
	_ = r.lock.Close()
}
