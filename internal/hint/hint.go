// Package hint attaches the next step to an error: what the operator can do
// about it. The cause stays in the error's text, the hint is told on a line of
// its own, by whoever reports the error.
package hint

import (
	"errors"
	"fmt"
)

// hinted is an error with a next step.
type hinted struct {
	error
	next string
}

func (h *hinted) Unwrap() error { return h.error }

// With returns err with a next step, formatted as by fmt.Sprintf. It returns
// nil for a nil err, and err itself where it already carries a hint: the one
// nearest to the cause knows most.
func With(err error, format string, args ...any) error {
	if err == nil || Of(err) != "" {
		return err
	}
	return &hinted{error: err, next: fmt.Sprintf(format, args...)}
}

// Of returns the next step that err carries anywhere in its chain, or "".
func Of(err error) string {
	if h, ok := errors.AsType[*hinted](err); ok {
		return h.next
	}
	return ""
}
