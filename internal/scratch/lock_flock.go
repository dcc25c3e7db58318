//go:build unix && !linux

package scratch

import "os"

func tryLock(f *os.File) error { return tryFlock(f) }
