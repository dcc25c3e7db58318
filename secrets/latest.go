package secrets

import "github.com/etcdkit/etcdkit/internal/mvccdb"

// latest follows, version by version, what each key has at last. It keeps 16
// bytes of each key, and names only where they may have to be told.
type latest struct {
	tally   *tally
	keys    *mvccdb.Keys // number of the class of the last version, 0 if deleted
	classes map[uint32]*class
	counts  map[*class]int // of last versions
	names   map[mvccdb.KeyID]named
	history bool // tell what a key had before
}

func newLatest(t *tally, history bool) *latest {
	return &latest{
		tally: t, keys: mvccdb.NewKeys(), history: history,
		classes: make(map[uint32]*class), counts: make(map[*class]int), names: make(map[mvccdb.KeyID]named),
	}
}

// add takes the next version of a key. What the key had before is history.
func (l *latest) add(id mvccdb.KeyID, v version) {
	number := uint32(0)
	if v.class != nil {
		number = v.class.number
		l.classes[number] = v.class
		l.counts[v.class]++
	}
	if before, _ := l.keys.Set(id, number); before != 0 {
		l.replaced(id, l.classes[before])
	}
	if v.name != nil && len(l.names) < l.tally.most {
		l.names[id] = *v.name
	}
}

func (l *latest) replaced(id mvccdb.KeyID, before *class) {
	l.counts[before]--
	name, known := l.names[id]
	delete(l.names, id)
	if !l.history {
		return
	}
	l.tally.count(History, before, 1)
	if known {
		l.tally.list(History, before, name)
	}
}

// live tells what is there at last.
func (l *latest) live() {
	for c, n := range l.counts {
		if n > 0 {
			l.tally.count(Live, c, n)
		}
	}
	for id, name := range l.names {
		number, _ := l.keys.Get(id)
		l.tally.list(Live, l.classes[number], name)
	}
}
