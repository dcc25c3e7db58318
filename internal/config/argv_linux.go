package config

import "unsafe"

// overwrite hides s, a part of os.Args, in the memory of the command line.
func overwrite(s string) {
	if s == "" {
		return
	}
	for i := range len(s) {
		*(*byte)(unsafe.Add(unsafe.Pointer(unsafe.StringData(s)), i)) = 'x'
	}
}
