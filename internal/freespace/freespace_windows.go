package freespace

import "golang.org/x/sys/windows"

// Of returns the bytes that this user may still write below dir.
func Of(dir string) (uint64, error) {
	path, err := windows.UTF16PtrFromString(dir)
	if err != nil {
		return 0, err
	}
	var free uint64
	err = windows.GetDiskFreeSpaceEx(path, &free, nil, nil)
	return free, err
}
