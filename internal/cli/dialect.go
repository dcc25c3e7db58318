package cli

// Dialect is whose manners a command has where etcdkit and upstream differ.
// What it decides is listed in docs/differences.md.
type Dialect int

const (
	// Native is etcdkit under its own name.
	Native Dialect = iota
	// Upstream is etcdctl or etcdutl: the same bytes, messages and exit codes.
	Upstream
)

// FlagBeatsVariable reports whether a flag silently wins over its environment
// variable. Upstream refuses to run when both are set.
func (d Dialect) FlagBeatsVariable() bool { return d == Native }

// RefusesEarly reports whether a format that a command cannot show is refused
// before anything is sent. Upstream executes the request first.
func (d Dialect) RefusesEarly() bool { return d == Native }

// DiagnosesConnections reports whether a connection that cannot be made is
// given up within a second and explained. Upstream retries until its timeout.
func (d Dialect) DiagnosesConnections() bool { return d == Native }

// IgnoresExtraArguments reports whether arguments that a command does not take
// are passed over. Natively they are wrong usage.
func (d Dialect) IgnoresExtraArguments() bool { return d == Upstream }

// PausesBeforeRangeDelete reports whether del waits for two seconds when the
// range's end is an argument. Natively it asks where it matters.
func (d Dialect) PausesBeforeRangeDelete() bool { return d == Upstream }

// AddsLearners reports whether a new member is a learner unless a vote is asked
// for. Upstream gives it a vote, which can cost quorum.
func (d Dialect) AddsLearners() bool { return d == Native }

// FitsTables reports whether a table is made to fit a terminal that is narrower
// than it.
func (d Dialect) FitsTables() bool { return d == Native }

// CleansUp reports whether a check takes back all that it wrote, its history and
// the space in the files too. Upstream leaves them unless told.
func (d Dialect) CleansUp() bool { return d == Native }

// GuardsTerminals reports whether text from outside is made printable before a
// person sees it. Upstream writes what it gets.
func (d Dialect) GuardsTerminals() bool { return d == Native }
