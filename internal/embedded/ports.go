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

// reservation keeps a port for this process: two clusters that are started at
// the same moment, in whatever processes, never choose the same.
type reservation struct {
	port int
	lock *fileutil.LockedFile
}

func reservePort() (*reservation, error) {
	for range portTries {
		port := firstPort + rand.IntN(lastPort-firstPort)
		path := filepath.Join(os.TempDir(), fmt.Sprintf("etcdkit-port-%d.lock", port))
		lock, err := fileutil.TryLockFile(path, os.O_CREATE|os.O_RDWR, 0o600)
		if err != nil {
			continue // taken, perhaps by another user
		}
		r := &reservation{port: port, lock: lock}
		if free(port) {
			return r, nil
		}
		r.release()
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

// release gives the port back.
func (r *reservation) release() {
	name := r.lock.Name()
	_ = os.Remove(name) // before the lock goes: afterwards it may be another's
	_ = r.lock.Close()
}
