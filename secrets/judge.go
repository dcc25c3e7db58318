package secrets

import (
	"context"
	"errors"
	"strings"
	"sync"

	"github.com/etcdkit/etcdkit/internal/kube"
)

// maxClasses bounds the classes: a keyspace may hold any number of names of
// keys that nobody configured.
const maxClasses = 10_000

// class is what stored versions are counted by. There are few of them, so
// that a stored version is a pointer to one. State is "" for what is only
// searched for credentials.
type class struct {
	Resource string
	State    State
	Provider string
	Key      string
	open     openResult
	rules    string // that found what looks like a credential
	number   uint32 // from 1 on, of those that a judge knows
}

// openResult is what the decrypt check found.
type openResult struct {
	asked  bool
	reason string // "" when the value opens
	later  bool   // a plugin could not be asked
}

// worthNaming reports whether versions of the class are listed one by one.
func (c *class) worthNaming() bool {
	return c.State.worthNaming() || c.open.reason != "" || c.rules != ""
}

// stored is a version of an object as it was found.
type stored struct {
	etcdKey, value []byte
	complete       bool // the end of the value is there
	opened         bool // the decrypt check is for it
	stamp
}

// stamp tells when a version was written.
type stamp struct {
	create, mod int64
	index       uint64 // in the WAL
	file        string // below the data directory, in Other
}

// version is one stored version of an object that is looked at. There may be
// very many, so that it names its object only where that may have to be told.
type version struct {
	class *class // nil for a deletion
	name  *named
}

// named is a version that is worth naming.
type named struct {
	etcdKey string
	stamp
}

// judge tells the state of stored values. It is safe for concurrent use.
type judge struct {
	opts  Options
	scope *scope
	rules []rule // of credentials; nil unless they are asked for

	mu      sync.Mutex
	classes map[class]*class
}

func newJudge(opts Options, s *scope) *judge {
	j := &judge{opts: opts, scope: s, classes: make(map[class]*class)}
	if opts.Detect {
		j.rules = rules()
	}
	return j
}

// value judges a stored value. told is false for one that was cut off before it
// could be told what it is.
func (j *judge) value(ctx context.Context, k kube.Key, v stored) (judged version, told bool) {
	s := j.opts.Config.Classify(v.value, v.complete)
	if s.Cut {
		return version{}, false
	}
	gr := kube.GroupResource{Group: k.Group, Resource: k.Resource}
	c := class{Resource: gr.String()}
	if j.scope.judges(gr) {
		c.State, c.Provider, c.Key = j.state(gr, s), s.Provider, s.Key
		if j.opts.Opener != nil && v.opened && s.Format == kube.Encrypted {
			c.open = j.open(ctx, k, v)
		}
	}
	if j.rules != nil && s.Format.Plain() && searched(gr, k.Name) {
		c.rules = detect(j.rules, k.Name, v.value)
	}
	return j.version(c, v.etcdKey, v.stamp), true
}

// version is a version of a class; its name is kept where it is needed.
func (j *judge) version(c class, etcdKey []byte, at stamp) version {
	v := version{class: j.intern(c)}
	if v.class.worthNaming() {
		v.name = &named{etcdKey: string(etcdKey), stamp: at}
	}
	return v
}

// open tries to open a value, and forgets at once what is in it.
func (j *judge) open(ctx context.Context, k kube.Key, v stored) openResult {
	plain, err := j.opts.Opener.Open(ctx, k, v.etcdKey, v.value)
	clear(plain)
	if err == nil {
		return openResult{asked: true}
	}
	return openResult{asked: true, reason: err.Error(), later: errors.Is(err, kube.ErrPlugin)}
}

func (j *judge) intern(c class) *class {
	j.mu.Lock()
	defer j.mu.Unlock()
	known := j.classes[c]
	if known == nil && len(j.classes) >= maxClasses {
		c.Key = ""
		if c.open.reason != "" {
			c.open.reason = "it does not open"
		}
		c.rules, _, _ = strings.Cut(c.rules, ",")
		known = j.classes[c]
	}
	if known == nil {
		c.Provider, c.Key = strings.Clone(c.Provider), strings.Clone(c.Key)
		kept := c
		kept.number = uint32(len(j.classes) + 1)
		known = &kept
		j.classes[c] = known
	}
	return known
}

// state compares how a value is stored with how it would be written now.
func (j *judge) state(gr kube.GroupResource, s kube.Storage) State {
	if s.Format == kube.Unknown {
		return Unknown
	}
	if j.opts.Config == nil {
		if s.Format.Plain() {
			return Plain
		}
		return Encrypted
	}
	providers, covered := j.opts.Config.Providers(gr)
	switch {
	case s.Format.Plain() && covered && providers[0].Kind == kube.Identity:
		return PlainAsConfigured
	case s.Format.Plain():
		return Plain
	case !covered, providers[0].Name() != s.Provider:
		return Stale
	case providers[0].KMS == nil:
		return staleUnless(s.Key == providers[0].Keys[0].Name)
	}
	current := j.opts.CurrentKeys[s.Provider]
	if current == "" || s.Key == "" {
		return CurrentProvider
	}
	return staleUnless(s.Key == current)
}

func staleUnless(current bool) State {
	if current {
		return Current
	}
	return Stale
}

// worthNaming reports whether versions in this state are listed one by one.
func (s State) worthNaming() bool {
	return s == Plain || s == PlainAsConfigured || s == Unknown || s == Stale
}
