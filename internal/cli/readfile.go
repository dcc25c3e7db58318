package cli

import (
	"fmt"
	"io"
	"os"
)

// MaxSecretFile bounds files that hold a password, a key or a certificate, in
// bytes.
const MaxSecretFile = 1 << 20

// ReadFile reads a small file that a user named, which may be a pipe: a signal
// ends a read that blocks, and a file of more than limit bytes is an error.
func (e *Env) ReadFile(path string, limit int64) ([]byte, error) {
	return Interruptible(e, func() ([]byte, error) {
		f, err := os.Open(path)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		b, err := io.ReadAll(io.LimitReader(f, limit+1))
		if err == nil && int64(len(b)) > limit {
			return nil, fmt.Errorf("read %s: more than %d bytes; is it the right file?", path, limit)
		}
		return b, err
	})
}
