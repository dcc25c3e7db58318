//go:build full && !windows

package parity_test

// wholeMatrix adds what seldom differs, where there is time for it.
const wholeMatrix = true
