package snapshot

import (
	"context"
	"errors"
	"os"
	"time"
)

// lockPatience bounds the wait for another save that puts its file in place.
const lockPatience = 10 * time.Second

// errLocked says that somebody else holds the lock, at this moment.
var errLocked = errors.New("the folder is locked")

// withFolderLocked calls fn while no other save puts files in place in a folder:
// a file and its manifest are two. Where a file system knows no locks, fn is
// called without.
func withFolderLocked(ctx context.Context, dir string, fn func() error) error {
	folder, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer folder.Close() // unlocks it
	ctx, cancel := context.WithTimeout(ctx, lockPatience)
	defer cancel()
	for wait := time.Millisecond; ; wait = min(2*wait, 100*time.Millisecond) {
		err := tryLockFolder(folder)
		if err == nil || !errors.Is(err, errLocked) {
			return fn()
		}
		select {
		case <-ctx.Done():
			return errors.New("another save into the same folder does not end")
		case <-time.After(wait):
		}
	}
}
