package secrets

import (
	"context"
	"errors"
	"strings"
	"sync"

	"github.com/etcdkit/etcdkit/internal/kube"
)

// class is what stored versions are counted by. There are few of them, so
// that each stored version holds a pointer to one.
type class struct {
	Resource string
	State    State
	Provider string
	Key      string
}

// version is one stored version of an object that is looked at, as little of
// it as is needed.
type version struct {
	etcdKey string
	class   *class // nil for a deletion
	create  int64
	mod     int64
	index   uint64 // in the WAL
	open    *openResult
}

// openResult is what the decrypt check found; nil means that it was not asked
// for.
type openResult struct {
	reason string // "" when the value opens
	later  bool   // a plugin could not be asked
}

// judge tells the state of stored values. It is safe for concurrent use.
type judge struct {
	opts  Options
	scope *scope

	mu      sync.Mutex
	classes map[class]*class
	opened  *openResult
}

func newJudge(opts Options, s *scope) *judge {
	return &judge{opts: opts, scope: s, classes: make(map[class]*class), opened: &openResult{}}
}

// value judges a stored value. complete is false where only the beginning of
// the value is there, which cannot be opened.
func (j *judge) value(ctx context.Context, k kube.Key, etcdKey, value []byte, complete bool) version {
	s := kube.Classify(value)
	gr := kube.GroupResource{Group: k.Group, Resource: k.Resource}
	v := version{
		etcdKey: string(etcdKey),
		class:   j.intern(class{Resource: gr.String(), State: j.state(gr, s), Provider: s.Provider, Key: s.Key}),
	}
	if j.opts.Opener != nil && complete && s.Format == kube.Encrypted {
		v.open = j.open(ctx, k, etcdKey, value)
	}
	return v
}

// open tries to open a value, and forgets at once what is in it.
func (j *judge) open(ctx context.Context, k kube.Key, etcdKey, value []byte) *openResult {
	plain, err := j.opts.Opener.Open(ctx, k, etcdKey, value)
	clear(plain)
	if err == nil {
		return j.opened
	}
	return &openResult{reason: err.Error(), later: errors.Is(err, kube.ErrPlugin)}
}

func (j *judge) intern(c class) *class {
	j.mu.Lock()
	defer j.mu.Unlock()
	known := j.classes[c]
	if known == nil {
		c.Provider, c.Key = strings.Clone(c.Provider), strings.Clone(c.Key)
		known = &c
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
