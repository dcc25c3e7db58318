//go:build full

package secrets_test

const markedDirectories = 300
