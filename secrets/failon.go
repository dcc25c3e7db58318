package secrets

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// FailOn is what must not be found: states, each in one place or in all.
type FailOn []Condition

// Condition is a state in a place; Place "" means everywhere.
type Condition struct {
	State State
	Place Place
}

// DefaultFailOn is what a scan objects to unless told otherwise: everything that
// is not known to be encrypted, in every place.
func DefaultFailOn() FailOn {
	return FailOn{{State: Plain}, {State: PlainAsConfigured}, {State: Unknown}}
}

// String is how a condition is written.
func (c Condition) String() string {
	if c.Place == "" {
		return string(c.State)
	}
	return string(c.State) + "@" + string(c.Place)
}

// Conditions lists what FailOn can name: the states, and Credentials.
func Conditions() []State { return append(States(), Credentials) }

// ParseFailOn reads conditions such as "plain" or "stale@live".
func ParseFailOn(conditions []string) (FailOn, error) {
	if len(conditions) == 0 {
		return nil, fmt.Errorf("no states: there are %s", join(Conditions()))
	}
	var all FailOn
	for _, text := range conditions {
		state, place, at := strings.Cut(strings.TrimSpace(text), "@")
		c := Condition{State: State(state), Place: Place(place)}
		if !slices.Contains(Conditions(), c.State) {
			return nil, fmt.Errorf("unknown state %q: there are %s", state, join(Conditions()))
		}
		if at && !slices.Contains(Places(), c.Place) {
			return nil, fmt.Errorf("unknown place %q: there are %s", place, join(Places()))
		}
		all = append(all, c)
	}
	return all, nil
}

// ParsePlaces reads the names of places.
func ParsePlaces(names []string) ([]Place, error) {
	var all []Place
	for _, name := range names {
		p := Place(strings.TrimSpace(name))
		if !slices.Contains(Places(), p) {
			return nil, fmt.Errorf("unknown place %q: there are %s", name, join(Places()))
		}
		all = append(all, p)
	}
	return all, nil
}

func join[T ~string](list []T) string {
	texts := make([]string, len(list))
	for i, v := range list {
		texts[i] = string(v)
	}
	return strings.Join(texts, ", ")
}

// Hits counts the stored versions that f objects to.
func (f FailOn) Hits(r *Report) int {
	hits := 0
	for _, c := range r.Summary {
		if f.objects(c.State, c.Place) {
			hits += c.Count
		}
	}
	for _, c := range r.Credentials {
		if f.objects(Credentials, c.Place) {
			hits += c.Count
		}
	}
	return hits
}

// Verdict judges a report. The error is ErrHit or ErrNotOpened where the
// answer is bad; ErrIncomplete where nothing bad was found, but not everything
// could be seen.
func (r *Report) Verdict(f FailOn) error {
	var bad []error
	if hits := f.Hits(r); hits > 0 {
		bad = append(bad, fmt.Errorf("%w: %d found", ErrHit, hits))
	}
	if r.NotOpened > 0 {
		bad = append(bad, fmt.Errorf("%w: %d do not", ErrNotOpened, r.NotOpened))
	}
	if bad != nil {
		return errors.Join(bad...)
	}
	for _, p := range r.Places {
		if !p.Read {
			return fmt.Errorf("%w: %s: %s", ErrIncomplete, p.Place, p.Reason)
		}
	}
	if r.CannotTell > 0 {
		return fmt.Errorf("%w: %d values could not be opened without their plugin", ErrIncomplete, r.CannotTell)
	}
	return nil
}
