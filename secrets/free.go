package secrets

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"iter"
	"runtime"
	"slices"

	"golang.org/x/sync/errgroup"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/etcdkit/etcdkit/internal/kube"
	"github.com/etcdkit/etcdkit/internal/mvccdb"
)

const (
	// lookAhead is how much is read after a run of free pages, so that a
	// record that crosses its end is seen whole as a rule.
	lookAhead = 64 << 10
	// maxRecord bounds what is read for one record: etcd takes no larger
	// request unless told to.
	maxRecord = 8 << 20
	// secretMark begins a Secret in clear: the mark of protobuf storage, then
	// its version and kind.
	secretMark = "k8s\x00\n\x0c\n\x02v1\x12\x06Secret"
)

// free looks for what the pages still hold that no tree reaches, up to the
// end of the file. The bytes of a record identify it wherever it stands, so a
// search finds those in pages whose beginning was overwritten too. What it
// finds is a lower bound.
func (s *databaseScan) free(ctx context.Context) error {
	f := &freeScan{databaseScan: s, seen: mvccdb.NewKeys()}
	runs := make(chan mvccdb.Run)
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error {
		defer close(runs)
		return send(ctx, s.db.Unreachable(&s.reached), runs)
	})
	for range runtime.GOMAXPROCS(0) {
		g.Go(func() error {
			w := freeWorker{freeScan: f}
			for run := range runs {
				if err := w.run(ctx, run); err != nil {
					return fmt.Errorf("scan free pages: %w", err)
				}
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	reason := "what is found here is a lower bound: pages are overwritten piece by piece"
	if f.damaged {
		reason = "some free pages could not be read"
	}
	s.tally.place(Free, !f.damaged, f.bytes, reason)
	return nil
}

func send(ctx context.Context, runs iter.Seq[mvccdb.Run], to chan<- mvccdb.Run) error {
	for run := range runs {
		select {
		case to <- run:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

// freeScan is the search of free pages. Its tally and what follows are guarded
// by the mutex of the scan.
type freeScan struct {
	*databaseScan
	seen    *mvccdb.Keys // versions counted: copies of one stand in many pages
	bytes   int64
	damaged bool
}

// freeWorker searches runs of free pages one at a time.
type freeWorker struct {
	*freeScan
	buf []byte
}

// run searches one run of free pages.
func (w *freeWorker) run(ctx context.Context, run mvccdb.Run) error {
	size := int(run.Count) * w.db.PageSize()
	data, err := w.read(run, lookAhead)
	if err != nil {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.report.damage(err.Error())
		w.damaged = true
		return ctx.Err()
	}
	w.mu.Lock()
	w.bytes += int64(size)
	w.mu.Unlock()
	var covered []span // values of records, which are not looked at twice
	for _, dir := range w.scope.dirs {
		for at := range occurrences(data[:min(size+len(dir), len(data))], dir) {
			if rec, ok := recordAt(data, at); ok {
				covered = append(covered, rec.value)
				w.record(ctx, run, data, rec)
			}
		}
	}
	for at := range occurrences(data[:min(size+len(secretMark), len(data))], []byte(secretMark)) {
		if !inside(covered, at) {
			w.orphan(data[at:])
		}
	}
	return ctx.Err()
}

// read reads a run and up to ahead bytes of the free pages that follow it.
func (w *freeWorker) read(run mvccdb.Run, ahead int) ([]byte, error) {
	size := uint64(w.db.PageSize())
	pages := uint64(w.db.Size()) / size
	for more := uint64(ahead) / size; more > 0 && run.First+run.Count < pages && !w.reached.Has(run.First+run.Count); more-- {
		run.Count++
	}
	data, err := w.db.ReadPages(run, w.buf)
	if err == nil {
		w.buf = data
	}
	return data, err
}

// record judges a record found in free pages.
func (w *freeWorker) record(ctx context.Context, run mvccdb.Run, data []byte, rec freeRecord) {
	etcdKey := data[rec.key.from:rec.key.to:rec.key.to]
	k, ok := w.scope.match(etcdKey)
	if !ok || !w.first(etcdKey, rec.mod) {
		return
	}
	value := data[rec.value.from:min(rec.value.to, len(data))]
	complete := rec.value.to <= len(data)
	if !complete && rec.value.to-rec.value.from <= maxRecord {
		// The value goes on behind what was read. A second buffer, because
		// data is still being searched.
		other := freeWorker{freeScan: w.freeScan}
		if longer, err := other.read(run, rec.value.to-int(run.Count)*w.db.PageSize()+w.db.PageSize()); err == nil {
			value = longer[rec.value.from:min(rec.value.to, len(longer))]
			complete = rec.value.to <= len(longer)
		}
	}
	at := stamp{create: rec.create, mod: rec.mod}
	v := w.judge.value(ctx, k, stored{etcdKey: etcdKey, value: value, stamp: at})
	if v.class.State == Unknown && !complete {
		return // cut off before it could be told
	}
	w.add(v)
}

// orphan looks at a Secret in clear whose key was overwritten. Its metadata
// still names it.
func (w *freeWorker) orphan(value []byte) {
	namespace, name := kube.ProtobufName(value)
	if name == "" || len(w.scope.prefixes) == 0 {
		return
	}
	etcdKey := []byte(w.scope.prefixes[0] + "/secrets/" + namespace + "/" + name)
	if !w.first(etcdKey, 0) {
		return
	}
	gr := secretsResource()
	state := w.judge.state(gr, kube.Storage{Format: kube.Protobuf})
	w.add(w.judge.version(class{Resource: gr.String(), State: state}, etcdKey, stamp{}))
}

func (w *freeWorker) add(v version) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.tally.add(Free, v)
}

// first reports whether this version was not seen before.
func (f *freeScan) first(etcdKey []byte, mod int64) bool {
	id := f.seen.ID(binary.BigEndian.AppendUint64(slices.Clip(etcdKey), uint64(mod)))
	f.mu.Lock()
	defer f.mu.Unlock()
	_, seen := f.seen.Set(id, 0)
	return !seen
}

// span is a range of bytes.
type span struct{ from, to int }

func inside(spans []span, at int) bool {
	for _, s := range spans {
		if at >= s.from && at < s.to {
			return true
		}
	}
	return false
}

// occurrences yields where what stands in data.
func occurrences(data, what []byte) iter.Seq[int] {
	return func(yield func(int) bool) {
		for at := 0; ; at++ {
			i := bytes.Index(data[at:], what)
			if i < 0 {
				return
			}
			if at += i; !yield(at) {
				return
			}
		}
	}
}

// freeRecord is a record of the key bucket found by its bytes. Its value may
// reach past the end of what was read.
type freeRecord struct {
	key, value  span
	create, mod int64
}

// recordAt reads the record whose etcd key begins at at: before it stand the
// field's tag and the key's length, after it the other fields in their order.
func recordAt(data []byte, at int) (freeRecord, bool) {
	n := keyLength(data[:at])
	if n == 0 || at+n > len(data) {
		return freeRecord{}, false
	}
	r := freeRecord{key: span{at, at + n}}
	rest := data[at+n:]
	var numbers [5]int64 // by field number: create, mod, version
	for {
		num, typ, tag := protowire.ConsumeTag(rest)
		if tag < 0 || num < 2 || num > 5 {
			return freeRecord{}, false
		}
		rest = rest[tag:]
		v, size := protowire.ConsumeVarint(rest)
		if size < 0 {
			return freeRecord{}, false
		}
		rest = rest[size:]
		if num == 5 {
			from := len(data) - len(rest)
			r.value = span{from, from + int(min(v, maxRecord+1))}
			r.create, r.mod = numbers[2], numbers[3]
			ok := typ == protowire.BytesType && v > 0 && r.create > 0 && r.mod >= r.create && numbers[4] > 0
			return r, ok
		}
		if typ != protowire.VarintType {
			return freeRecord{}, false
		}
		numbers[num] = int64(v)
	}
}

// keyLength reads the tag and the length that stand before a key, at the end
// of before. It is 0 where none stand there.
func keyLength(before []byte) int {
	const tag = 1<<3 | byte(protowire.BytesType)
	for size := 1; size <= 2; size++ {
		i := len(before) - size
		if i < 1 || before[i-1] != tag {
			continue
		}
		if n, m := protowire.ConsumeVarint(before[i:]); m == size {
			return int(n)
		}
	}
	return 0
}
