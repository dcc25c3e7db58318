//go:build !full

package scratch

// raceStarts is how many folders each starter makes beside the sweepers.
const raceStarts = 60
