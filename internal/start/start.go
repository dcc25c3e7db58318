// Package start spares the program's start a garbage collection: the packages
// that it is made of fill 3 MiB before main runs, which is just enough for one,
// and that takes as long as a fifth of the whole start.
package start

import "runtime/debug"

// percent is what the collector was set to. The package imports next to
// nothing, so that it is among the first to be set up.
var percent = debug.SetGCPercent(400) //nolint:gochecknoglobals // nothing else runs before main

// Done lets the collector work as it was set.
func Done() { debug.SetGCPercent(percent) }
