package secrets

import (
	"cmp"
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
	named  map[Place]int // findings listed
	closed map[Place]int // versions listed that do not open
	leaks  map[Place]int // versions listed that hold credentials
	most   int           // of each of them
}

// placed is a class in a place.
type placed struct {
	place Place
	class *class
}

func newTally(s *scope, opts Options) *tally {
	t := &tally{
		scope: s, report: &Report{Summary: []Count{}, Findings: []Finding{}}, most: opts.MostNamed,
		counts: make(map[placed]int), seen: make(map[Place]int), named: make(map[Place]int), closed: make(map[Place]int), leaks: make(map[Place]int),
	}
	if t.most <= 0 {
		t.most = mostNamed
	}
	return t
}

// add counts a stored version, and lists it if it is worth naming.
func (t *tally) add(place Place, v version) {
	t.count(place, v.class, 1)
	if v.name != nil {
		t.list(place, v.class, *v.name)
	}
}

func (t *tally) count(place Place, c *class, n int) {
	t.seen[place] += n
	t.counts[placed{place, c}] += n
}

// list names a version, where there are not too many already.
func (t *tally) list(place Place, c *class, n named) {
	if c.State.worthNaming() && t.named[place] < t.most {
		t.named[place]++
		t.report.Findings = append(t.report.Findings, t.finding(place, c, n))
	}
	if c.open.reason != "" && t.closed[place] < t.most {
		t.closed[place]++
		t.report.Unopened = append(t.report.Unopened, Unopened{
			EtcdKey: n.etcdKey, Place: place, Revision: n.mod, Provider: c.Provider, Key: c.Key,
			Reason: c.open.reason, CannotTell: c.open.later,
		})
	}
	if c.rules != "" && t.leaks[place] < t.most {
		t.leaks[place]++
		f := t.finding(place, c, n)
		t.report.Detected = append(t.report.Detected, Detection{
			EtcdKey: f.EtcdKey, Resource: f.Resource, Namespace: f.Namespace, Name: f.Name, Place: place,
			Rules: strings.Split(c.rules, ","), Revision: f.Revision, Index: f.Index, File: f.File,
		})
	}
}

func (t *tally) finding(place Place, c *class, n named) Finding {
	f := Finding{
		EtcdKey: n.etcdKey, Resource: c.Resource, Place: place, State: c.State, Provider: c.Provider, Key: c.Key,
		Revision: n.mod, CreateRevision: n.create, ModRevision: n.mod, Index: n.index, File: n.file,
	}
	if k, ok := t.scope.match([]byte(n.etcdKey)); ok {
		// Parts of the etcd key, so that they cost no memory of their own.
		f.Namespace, f.Name = part(n.etcdKey, k.Namespace), part(n.etcdKey, k.Name)
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

// merge takes over all that another tally has, as found in one place, and in a file.
func (t *tally) merge(p Place, from *tally, file string) {
	for c, n := range from.counts {
		t.count(p, c.class, n)
	}
	for _, f := range from.report.Findings {
		if t.named[p] < t.most {
			t.named[p]++
			f.Place, f.File = p, file
			t.report.Findings = append(t.report.Findings, f)
		}
	}
	for _, d := range from.report.Detected {
		if t.leaks[p] < t.most {
			t.leaks[p]++
			d.Place, d.File = p, file
			t.report.Detected = append(t.report.Detected, d)
		}
	}
	for _, d := range from.report.Damage {
		t.report.damage(strings.TrimPrefix(file+": "+d, ": "))
	}
}

// sum writes the counts to the report. Classes that differ only in what the
// decrypt check said are one line.
func (t *tally) sum() {
	r := t.report
	lines, leaks := make(map[Count]int), make(map[Credential]int)
	r.NotNamed = -len(r.Findings)
	for p, n := range t.counts {
		c := p.class
		if c.rules != "" {
			for rule := range strings.SplitSeq(c.rules, ",") {
				leaks[Credential{Resource: c.Resource, Place: p.place, Rule: rule}] += n
			}
		}
		if c.State == "" {
			continue
		}
		lines[Count{Resource: c.Resource, Place: p.place, State: c.State, Provider: c.Provider, Key: c.Key}] += n
		if c.State.worthNaming() {
			r.NotNamed += n
		}
		switch {
		case !c.open.asked:
		case c.open.reason == "":
			r.Opened += n
		case c.open.later:
			r.CannotTell += n
		default:
			r.NotOpened += n
		}
	}
	for line, n := range lines {
		line.Count = n
		r.Summary = append(r.Summary, line)
	}
	for leak, n := range leaks {
		leak.Count = n
		r.Credentials = append(r.Credentials, leak)
	}
}

// finish completes the report.
func (t *tally) finish(config *kube.EncryptionConfig) {
	r := t.report
	r.Prefixes = slices.Sorted(slices.Values(t.scope.prefixes))
	for _, p := range Places() {
		if !slices.ContainsFunc(r.Places, func(c Coverage) bool { return c.Place == p }) {
			r.NotLookedAt = append(r.NotLookedAt, p)
		}
	}
	t.sum()
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
	slices.SortFunc(r.Credentials, func(a, b Credential) int {
		return cmp.Or(cmp.Compare(slices.Index(places, a.Place), slices.Index(places, b.Place)),
			cmp.Compare(a.Resource, b.Resource), cmp.Compare(a.Rule, b.Rule))
	})
	slices.SortFunc(r.Detected, func(a, b Detection) int {
		return cmp.Or(cmp.Compare(slices.Index(places, a.Place), slices.Index(places, b.Place)),
			compareNatural(a.EtcdKey, b.EtcdKey), cmp.Compare(a.Revision, b.Revision), cmp.Compare(a.Index, b.Index))
	})
	slices.SortStableFunc(r.Places, func(a, b Coverage) int {
		return cmp.Compare(slices.Index(places, a.Place), slices.Index(places, b.Place))
	})
	r.Keys = keyUse(r.Summary, config)
	r.Next = nextSteps(r, config)
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
	for _, p := range providers(config) {
		plugins[p.Name()] = p.KMS != nil
		for _, k := range p.Keys {
			use(p.Name(), k.Name).Configured = true
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

// providers lists those of all rules, in order.
func providers(config *kube.EncryptionConfig) (all []kube.Provider) {
	if config == nil {
		return nil
	}
	for _, rule := range config.Rules {
		all = append(all, rule.Providers...)
	}
	return all
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
