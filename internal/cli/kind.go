package cli

import (
	"errors"
	"fmt"
)

// The kinds of failure that have an exit code of their own in the etcdkit tree
// (docs/exit-codes.md). Anything else is a plain failure.
var (
	ErrUsage      = errors.New("wrong usage")               // 2: flags, arguments, configuration; nothing was sent
	ErrVerdict    = errors.New("the judgement is bad")      // 3: a judging command ran, and its answer is bad
	ErrCannotTell = errors.New("not enough seen to judge")  // 4: a judging command could not see enough
	ErrGuard      = errors.New("refused to protect a user") // 5: refused by a guard
)

// kindError gives an error a kind without changing its text.
type kindError struct {
	error
	kind error
}

func (e *kindError) Unwrap() []error { return []error{e.error, e.kind} }

func withKind(err, kind error) error {
	if err == nil {
		return nil
	}
	return &kindError{err, kind}
}

// Usage marks err as wrong usage or configuration.
func Usage(err error) error { return withKind(err, ErrUsage) }

// Usagef is Usage of a new error.
func Usagef(format string, args ...any) error { return Usage(fmt.Errorf(format, args...)) }

// Verdict marks err as the bad answer of a command that judges.
func Verdict(err error) error { return withKind(err, ErrVerdict) }

// CannotTell marks err as the failure of a command that judges to see enough.
func CannotTell(err error) error { return withKind(err, ErrCannotTell) }

// Guard marks err as a refusal that protects the user.
func Guard(err error) error { return withKind(err, ErrGuard) }

// KeepKind gives err, which says the same as before in other words, the kind
// that before has.
func KeepKind(err, before error) error {
	for _, kind := range []error{ErrUsage, ErrVerdict, ErrCannotTell, ErrGuard} {
		if errors.Is(before, kind) && !errors.Is(err, kind) {
			return withKind(err, kind)
		}
	}
	return err
}

// ChildExit is the exit code of a command that was run for the user, who is
// told nothing more: the command has spoken for itself.
type ChildExit struct{ Code int }

func (e *ChildExit) Error() string { return fmt.Sprintf("the command ended with exit code %d", e.Code) }
