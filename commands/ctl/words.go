package ctl

import (
	"fmt"
	"regexp"
	"strings"
)

// word matches what upstream takes for one word of a line: text in double
// quotes, with backslashes, text in single quotes, or bare text.
const word = `"(?:[^"\\]|\\.)*"|'[^']*'|[^'"\s]\S*[^'"\s]?`

// splitWords takes a line of txn or of interactive watch apart, much as a shell
// would. Natively double quotes may hold newlines.
func splitWords(line string, upstream bool) ([]string, error) {
	pattern := word
	if !upstream {
		pattern = "(?s)" + word // a backslash before a newline
	}
	words := regexp.MustCompile(pattern).FindAllString(line, -1)
	for i, w := range words {
		switch w[0] {
		case '\'':
			words[i] = w[1 : len(w)-1]
		case '"':
			if !upstream {
				w = escapeNewlines(w)
			}
			if _, err := fmt.Sscanf(w, "%q", &words[i]); err != nil {
				return nil, err
			}
		}
	}
	return words, nil
}

// escapeNewlines makes a quoted string that holds newlines one that Go can read.
func escapeNewlines(s string) string {
	return strings.NewReplacer("\r", `\r`, "\n", `\n`).Replace(s)
}

// openQuote reports whether a line ends inside of quotes as splitWords sees
// them: in a bare word, a quote opens nothing.
func openQuote(line string) bool {
	const between, bare = byte(0), byte('b')
	state := between
	for i := 0; i < len(line); i++ {
		c := line[i]
		space := strings.IndexByte(" \t\n\v\f\r", c) >= 0
		switch {
		case state == '"' && c == '\\':
			i++
		case (state == '"' || state == '\'') && c == state, state == bare && space:
			state = between
		case state == between && (c == '"' || c == '\''):
			state = c
		case state == between && !space:
			state = bare
		}
	}
	return state == '"' || state == '\''
}

// openDoubleQuote is openQuote for a condition, where double quotes count
// wherever they stand and single ones nowhere.
func openDoubleQuote(line string) bool {
	open := false
	for i := 0; i < len(line); i++ {
		switch {
		case open && line[i] == '\\':
			i++
		case line[i] == '"':
			open = !open
		}
	}
	return open
}
