//go:build linux && full

package commands_test

// hostileRounds is how often each command runs in a hostile folder.
const hostileRounds = 20
