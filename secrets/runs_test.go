//go:build !full

package secrets_test

const markedDirectories = 16 // that are scanned in the plain test run
