package config

import "strings"

// Suggestion returns a hint for a name that does not exist: the nearest of
// those that do, whatever the case, or the general one where none is near.
func Suggestion(wrong string, names []string, general string) string {
	best, distance := "", len(wrong)/2+1
	for _, name := range names {
		if d := edits(strings.ToLower(wrong), strings.ToLower(name)); d < distance {
			best, distance = name, d
		}
	}
	if best == "" {
		return general
	}
	return "did you mean " + best + "?"
}

// edits returns the Levenshtein distance of two names.
func edits(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost = 1 + min(diagonal, row[j], row[j+1])
			}
			diagonal, row[j+1] = row[j+1], cost
		}
	}
	return row[len(b)]
}
