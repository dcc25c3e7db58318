package secrets

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/etcdkit/etcdkit/internal/kube"
)

// tally collects what is found and makes the report. It is not safe for
// concurrent use.
type tally struct {
	scope  *scope
	counts map[placed]int
	report *Report
	seen   map[Place]int
}

// placed is a class in a place.
type placed struct {
	place Place
	class class
}

func newTally(s *scope, r *Report) *tally {
	return &tally{scope: s, counts: make(map[placed]int), report: r, seen: make(map[Place]int)}
}

// add counts a stored version, and lists it if it is worth naming.
func (t *tally) add(place Place, v version) {
	t.seen[place]++
	t.counts[placed{place, *v.class}]++
	if v.class.State.worthNaming() {
		if len(t.report.Findings) < maxFindings {
			t.report.Findings = append(t.report.Findings, t.finding(place, v))
		} else {
			t.report.NotNamed++
		}
	}
	switch {
	case v.open == nil:
	case v.open.reason == "":
		t.report.Opened++
	default:
		t.report.Unopened = append(t.report.Unopened, Unopened{
			EtcdKey: v.etcdKey, Place: place, Revision: v.mod, Provider: v.class.Provider, Key: v.class.Key,
			Reason: v.open.reason, CannotTell: v.open.later,
		})
	}
}

func (t *tally) finding(place Place, v version) Finding {
	f := Finding{
		EtcdKey: v.etcdKey, Resource: v.class.Resource, Place: place, State: v.class.State,
		Provider: v.class.Provider, Key: v.class.Key,
		Revision: v.mod, CreateRevision: v.create, ModRevision: v.mod, Index: v.index,
	}
	if k, ok := t.scope.match([]byte(v.etcdKey)); ok {
		// Parts of the etcd key, so that they cost no memory of their own.
		f.Namespace, f.Name = part(v.etcdKey, k.Namespace), part(v.etcdKey, k.Name)
	}
	return f
}

// part returns the last occurrence of s in whole.
func part(whole, s string) string {
	if i := strings.LastIndex(whole, s); s != "" && i >= 0 {
		return whole[i : i+len(s)]
	}
	return ""
}

// place says how much of a place was read.
func (t *tally) place(p Place, read bool, bytes int64, reason string) {
	t.report.Places = append(t.report.Places, Coverage{Place: p, Read: read, Bytes: bytes, Objects: t.seen[p], Reason: reason})
}

// live counts what each key has at last. Where not everything can be named it
// is the first keys by name that are.
func (t *tally) live(latest map[string]version) {
	keys := slices.Collect(maps.Keys(latest))
	if len(keys) > maxFindings {
		slices.Sort(keys)
	}
	for _, key := range keys {
		t.add(Live, latest[key])
	}
}

// merge takes over all that another tally has, as found in one place.
func (t *tally) merge(p Place, from *tally) {
	for c, n := range from.counts {
		t.counts[placed{p, c.class}] += n
		t.seen[p] += n
	}
	t.report.NotNamed += from.report.NotNamed
	for _, f := range from.report.Findings {
		f.Place = p
		if len(t.report.Findings) < maxFindings {
			t.report.Findings = append(t.report.Findings, f)
		} else {
			t.report.NotNamed++
		}
	}
	for _, d := range from.report.Damage {
		t.report.damage(d)
	}
}

// finish completes the report.
func (t *tally) finish(config *kube.EncryptionConfig) {
	r := t.report
	r.Prefixes = t.scope.prefixes
	for p, n := range t.counts {
		c := p.class
		r.Summary = append(r.Summary, Count{Resource: c.Resource, Place: p.place, State: c.State, Provider: c.Provider, Key: c.Key, Count: n})
	}
	places, states := Places(), States()
	slices.SortFunc(r.Summary, func(a, b Count) int {
		return cmp.Or(cmp.Compare(a.Resource, b.Resource), cmp.Compare(slices.Index(places, a.Place), slices.Index(places, b.Place)),
			cmp.Compare(slices.Index(states, a.State), slices.Index(states, b.State)),
			cmp.Compare(a.Provider, b.Provider), cmp.Compare(a.Key, b.Key))
	})
	slices.SortFunc(r.Findings, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(slices.Index(places, a.Place), slices.Index(places, b.Place)),
			cmp.Compare(slices.Index(states, a.State), slices.Index(states, b.State)),
			compareNatural(a.EtcdKey, b.EtcdKey), cmp.Compare(a.Revision, b.Revision), cmp.Compare(a.Index, b.Index))
	})
	slices.SortFunc(r.Unopened, func(a, b Unopened) int {
		return cmp.Or(cmp.Compare(slices.Index(places, a.Place), slices.Index(places, b.Place)),
			compareNatural(a.EtcdKey, b.EtcdKey), cmp.Compare(a.Revision, b.Revision))
	})
	slices.SortStableFunc(r.Places, func(a, b Coverage) int {
		return cmp.Compare(slices.Index(places, a.Place), slices.Index(places, b.Place))
	})
	r.Keys = keyUse(r.Summary, config)
	r.Next = nextSteps(r)
}

// keyUse lists every key that is in use or configured.
func keyUse(summary []Count, config *kube.EncryptionConfig) []KeyUse {
	uses := []KeyUse{}
	at := make(map[[2]string]int)
	use := func(provider, key string) *KeyUse {
		id := [2]string{provider, key}
		i, ok := at[id]
		if !ok {
			i = len(uses)
			at[id] = i
			uses = append(uses, KeyUse{Provider: provider, Key: key, Counts: make(map[Place]int)})
		}
		return &uses[i]
	}
	plugins := make(map[string]bool)
	if config != nil {
		for _, rule := range config.Rules {
			for _, p := range rule.Providers {
				plugins[p.Name()] = p.KMS != nil
				for _, k := range p.Keys {
					use(p.Name(), k.Name).Configured = true
				}
			}
		}
	}
	for _, c := range summary {
		if c.Provider != "" {
			u := use(c.Provider, c.Key)
			u.Configured = u.Configured || plugins[c.Provider]
			u.Counts[c.Place] += c.Count
		}
	}
	return uses
}

// compareNatural compares texts with the numbers in them by value: plain-9
// before plain-10.
func compareNatural(a, b string) int {
	for a != "" && b != "" {
		na, nb := digits(a), digits(b)
		if na > 0 && nb > 0 {
			x, y := strings.TrimLeft(a[:na], "0"), strings.TrimLeft(b[:nb], "0")
			if c := cmp.Or(cmp.Compare(len(x), len(y)), cmp.Compare(x, y), cmp.Compare(na, nb)); c != 0 {
				return c
			}
			a, b = a[na:], b[nb:]
			continue
		}
		if c := cmp.Compare(a[0], b[0]); c != 0 {
			return c
		}
		a, b = a[1:], b[1:]
	}
	return cmp.Compare(len(a), len(b))
}

func digits(s string) int {
	n := 0
	for n < len(s) && s[n] >= '0' && s[n] <= '9' {
		n++
	}
	return n
}
