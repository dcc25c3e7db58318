package secrets

import (
	"errors"
	"os"

	"github.com/etcdkit/etcdkit/internal/regular"
)

// OSFile makes a File of an *os.File.
type OSFile struct{ *os.File }

// Size implements File.
func (f OSFile) Size() (int64, error) {
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

// openRegular opens a regular file and tells its size.
func openRegular(path string) (f *os.File, size int64, err error) {
	if f, err = regular.Open(path); err != nil {
		return nil, 0, err
	}
	size, err = OSFile{f}.Size()
	if err != nil {
		return nil, 0, errors.Join(err, f.Close())
	}
	return f, size, nil
}
