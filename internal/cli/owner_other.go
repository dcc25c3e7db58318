//go:build !unix

package cli

// WritableByOthers knows nothing of rights that are not POSIX permissions.
func WritableByOthers(string) string { return "" }
