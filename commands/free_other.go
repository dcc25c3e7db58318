//go:build !linux && !darwin

package commands

import "errors"

// freeBytes is not known here; --disk-free says it instead.
func freeBytes(string) (int64, error) {
	return 0, errors.New("free space cannot be read on this system, give --disk-free")
}
