// Package version tells which etcdkit this is.
package version

import "runtime/debug"

// stamped is set by the linker of a release build:
// -ldflags "-X github.com/etcdkit/etcdkit/internal/version.stamped=v1.2.3".
var stamped string //nolint:gochecknoglobals // the linker can set nothing else

// String returns the version of a release, what the Go toolchain knows of the
// source otherwise, or "devel".
func String() string {
	if stamped != "" {
		return stamped
	}
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Version == "" || info.Main.Version == "(devel)" {
		return "devel"
	}
	return info.Main.Version
}
