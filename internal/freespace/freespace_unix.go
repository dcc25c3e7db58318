//go:build unix

package freespace

import "golang.org/x/sys/unix"

// Of returns the bytes that an ordinary user may still write below dir.
func Of(dir string) (uint64, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return 0, err
	}
	return uint64(st.Bavail) * uint64(st.Bsize), nil // the types differ between systems
}
