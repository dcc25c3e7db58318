package hint_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/etcdkit/etcdkit/internal/hint"
)

func TestOf(t *testing.T) {
	cause := errors.New("open backup.db: no such file")
	for name, tc := range map[string]struct {
		err  error
		want string
	}{
		"an error without a hint has none":      {cause, ""},
		"no error has none":                     {nil, ""},
		"a hint is found":                       {hint.With(cause, "check the %s", "path"), "check the path"},
		"a hint is found through wrapping":      {fmt.Errorf("restore: %w", hint.With(cause, "a")), "a"},
		"a hint is found among joined errors":   {errors.Join(cause, hint.With(cause, "b")), "b"},
		"the hint nearest to the cause stays":   {hint.With(hint.With(cause, "near"), "far"), "near"},
		"a nil error stays nil, so has no hint": {hint.With(nil, "never"), ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := hint.Of(tc.err); got != tc.want {
				t.Errorf("Of(%v) = %q, want %q", tc.err, got, tc.want)
			}
		})
	}
}

func TestWithKeepsTheCause(t *testing.T) {
	cause := errors.New("cause")
	err := hint.With(cause, "next")
	if !errors.Is(err, cause) || err.Error() != "cause" {
		t.Errorf("With(cause) = %q, Is(cause) %v", err, errors.Is(err, cause))
	}
}
