package store

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"syscall"

	"github.com/etcdkit/etcdkit/internal/dirfd"
	"github.com/etcdkit/etcdkit/internal/hint"
)

// explainFile says what was asked of the file system and what to do about a
// refusal.
func explainFile(what string, err error) error {
	if err == nil {
		return nil
	}
	cause := err
	if path, ok := errors.AsType[*fs.PathError](err); ok && errors.Is(err, path.Err) {
		cause = path.Err // the path is in what already
	}
	switch {
	case errors.Is(err, dirfd.ErrLink):
		return hint.With(fmt.Errorf("%s: %w", what, err),
			"data behind a link is read, but never changed: replace the link by what it leads to, or name that folder as the repository")
	case errors.Is(err, fs.ErrNotExist) && !strings.HasPrefix(what, "write "):
		return fmt.Errorf("%s: %w", what, ErrNotExist)
	case errors.Is(err, fs.ErrPermission):
		return hint.With(fmt.Errorf("%s: %w", what, ErrDenied), "check owner and mode of the folder, or run as the user that owns it")
	case errors.Is(err, syscall.ENOSPC):
		return hint.With(fmt.Errorf("%s: %w", what, cause), "free space on that disk, or save to another one")
	case errors.Is(err, syscall.EROFS):
		return hint.With(fmt.Errorf("%s: %w", what, cause), "choose a folder on a disk that is mounted for writing")
	case errors.Is(err, syscall.ENOTDIR):
		return hint.With(fmt.Errorf("%s: %w", what, cause), "a part of that path is a file: name a folder, ending in /")
	}
	return fmt.Errorf("%s: %w", what, cause)
}

// Passing reports whether a file that could not be read may be readable when
// asked for again. Requests to a bucket have been repeated already.
func Passing(err error) bool {
	for _, passing := range []error{syscall.EIO, syscall.ESTALE, syscall.EAGAIN, syscall.EINTR, syscall.ETIMEDOUT} {
		if errors.Is(err, passing) {
			return true
		}
	}
	return false
}
