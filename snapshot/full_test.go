//go:build full

package snapshot_test

// fullRun tells that long tests run too.
const fullRun = true
