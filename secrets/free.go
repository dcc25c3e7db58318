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
	// pageHeader is the size of what every page of a database begins with.
	pageHeader = 16
)

// secretMarks begin a Secret in clear, in protobuf and in JSON.
func secretMarks() []string {
	return []string{"k8s\x00\n\x0c\n\x02v1\x12\x06Secret", `{"kind":"Secret","apiVersion":"v1"`}
}

// free looks for what the pages still hold that no tree reaches, up to the
// end of the file. The bytes of a record identify it wherever it stands, so a
// search finds those in pages whose beginning was overwritten too. What it
// finds is a lower bound.
func (s *databaseScan) free(ctx context.Context) error {
	f := &freeScan{databaseScan: s, seen: mvccdb.NewKeys(), unclear: make(map[mvccdb.KeyID]version)}
	runs := make(chan fileRange)
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error {
		defer close(runs)
		return send(ctx, f.ranges(), runs)
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
	f.judgeUnclear()
	reason := "what is found here is a lower bound: pages are overwritten piece by piece"
	if f.damaged {
		reason = "some free pages could not be read"
	}
	s.tally.place(Free, !f.damaged, f.bytes, reason)
	return nil
}

func send(ctx context.Context, runs iter.Seq[fileRange], to chan<- fileRange) error {
	for run := range runs {
		select {
		case to <- run:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

// fileRange is a range of bytes in the file; more of what belongs to the same
// free pages may be read up to ahead.
type fileRange struct{ from, to, ahead int64 }

// ranges yields the free pages, and what follows the last whole page.
func (f *freeScan) ranges() iter.Seq[fileRange] {
	size := int64(f.db.PageSize())
	pages := f.db.Size() / size
	return func(yield func(fileRange) bool) {
		for run := range f.db.Unreachable(&f.reached) {
			end := run.First + run.Count
			for more := uint64(lookAhead) / uint64(size); more > 0 && int64(end) < pages && !f.reached.Has(end); more-- {
				end++
			}
			r := fileRange{int64(run.First) * size, int64(run.First+run.Count) * size, int64(end) * size}
			if int64(end) == pages {
				r.ahead = f.db.FileSize()
			}
			if !yield(r) {
				return
			}
		}
		if end := f.db.FileSize(); end > pages*size {
			yield(fileRange{pages * size, end, end})
		}
	}
}

// freeScan is the search of free pages. Its tally and what follows are guarded
// by the mutex of the scan.
type freeScan struct {
	*databaseScan
	seen    *mvccdb.Keys // versions counted: copies of one stand in many pages
	unclear map[mvccdb.KeyID]version
	bytes   int64
	damaged bool
}

// freeWorker searches runs of free pages one at a time.
type freeWorker struct {
	*freeScan
	buf []byte
}

// run searches one run of free pages.
func (w *freeWorker) run(ctx context.Context, run fileRange) error {
	start := max(run.from-lookBack, 0)
	data, err := w.db.ReadBytes(start, run.ahead, w.buf)
	w.mu.Lock()
	w.bytes += run.to - run.from
	if err != nil {
		w.report.damage(err.Error())
		w.damaged = true
	}
	w.mu.Unlock()
	if err != nil {
		return ctx.Err()
	}
	w.buf = data
	from, limit := int(run.from-start), min(int(run.to-start), len(data))
	judged := make(map[int]bool) // beginnings of values
	for _, dir := range w.scope.dirs {
		for at := range occurrences(data, dir, from, limit) {
			if rec, ok := recordAt(data, at); ok {
				judged[rec.value.from] = true
				w.record(ctx, start, data, rec)
			}
		}
	}
	for _, mark := range secretMarks() {
		for at := range occurrences(data, []byte(mark), from, limit) {
			if what, v := w.orphan(data[at:], mark, ""); !judged[at] && what != nil {
				w.add(what, v)
			}
		}
	}
	return ctx.Err()
}

// record judges a record found in free pages. data begins at byte start of the file.
func (w *freeWorker) record(ctx context.Context, start int64, data []byte, rec foundRecord) {
	etcdKey := rec.key.of(data)
	k, ok := w.scope.match(etcdKey)
	if !ok {
		return
	}
	value := rec.value.of(data)
	complete := rec.value.to <= len(data)
	if !complete && rec.value.to-rec.value.from <= maxRecord {
		// The value goes on behind what was read. A buffer of its own, because
		// data is still being searched.
		if longer, err := w.db.ReadBytes(start+int64(rec.value.from), start+int64(rec.value.to), nil); err == nil {
			value, complete = longer, len(longer) == rec.value.to-rec.value.from
		}
	}
	if n := w.reused(start+int64(rec.value.from), value); n < len(value) {
		value, complete = value[:n], false
	}
	v, told := w.judge.value(ctx, k, stored{etcdKey: etcdKey, value: value, complete: complete, stamp: stamp{create: rec.create, mod: rec.mod}})
	if told && (rec.whole || v.class.State != Unknown) {
		w.add(binary.BigEndian.AppendUint64(slices.Clip(etcdKey), uint64(rec.mod)), v)
	}
}

// reused returns how much of the bytes at a place of the file comes before a
// page that begins with its own number: what stood there belongs to something
// else by now.
func (w *freeWorker) reused(at int64, b []byte) int {
	size := int64(w.db.PageSize())
	for page := (at + size - 1) / size; (page+1)*size > 0; page++ {
		from := page*size - at
		if from+pageHeader > int64(len(b)) {
			break
		}
		if binary.LittleEndian.Uint64(b[from:]) == uint64(page) {
			return int(from)
		}
	}
	return len(b)
}

// orphan judges a Secret in clear whose key was overwritten. Its metadata may
// name it still. The first result stands for the version.
func (s *databaseScan) orphan(value []byte, mark, file string) ([]byte, version) {
	if len(s.scope.prefixes) == 0 {
		return nil, version{}
	}
	format := kube.JSON
	if mark[0] == 'k' {
		format = kube.Protobuf
	}
	namespace, name := kube.ProtobufName(value)
	etcdKey := []byte(s.scope.prefixes[len(s.scope.prefixes)-1] + "/secrets/")
	what := value[:min(len(value), 2*len(mark)+lookBack)]
	if name != "" {
		etcdKey = append(etcdKey, namespace+"/"+name...)
		what = etcdKey
	}
	gr := secretsResource()
	c := class{Resource: gr.String(), State: s.judge.state(gr, kube.Storage{Format: format})}
	return what, s.judge.version(c, etcdKey, stamp{file: file})
}

// add counts a version, which what stands for, once for each class in which
// copies of it were found. One that is in no format counts only if no other copy
// tells more: a page is overwritten piece by piece.
func (w *freeWorker) add(what []byte, v version) {
	id := w.seen.ID(what)
	ofClass := w.seen.ID(binary.BigEndian.AppendUint32(slices.Clip(what), v.class.number))
	w.mu.Lock()
	defer w.mu.Unlock()
	if v.class.State == Unknown {
		w.unclear[id] = v
		return
	}
	w.seen.Set(id, 0)
	if _, seen := w.seen.Set(ofClass, 0); !seen {
		w.tally.add(Free, v)
	}
}

// judgeUnclear counts what was found in no format only.
func (f *freeScan) judgeUnclear() {
	for id, v := range f.unclear {
		if _, seen := f.seen.Get(id); !seen {
			f.tally.add(Free, v)
		}
	}
}

// span is a range of bytes.
type span struct{ from, to int }

// of returns the bytes of a range, as far as they are there.
func (s span) of(data []byte) []byte {
	to := min(s.to, len(data))
	return data[min(s.from, to):to:to]
}

// occurrences yields where what begins in data[from:limit].
func occurrences(data, what []byte, from, limit int) iter.Seq[int] {
	return func(yield func(int) bool) {
		end := min(limit+len(what)-1, len(data))
		for at := from; at < end; at++ {
			i := bytes.Index(data[at:end], what)
			if i < 0 {
				return
			}
			if at += i; !yield(at) {
				return
			}
		}
	}
}

// foundRecord is a record of the key bucket, or a put of a log, found by its
// bytes. Its value may reach past the end of what was read.
type foundRecord struct {
	key, value  span
	create, mod int64
	whole       bool // nothing speaks against it; else a part of it may be overwritten
}

// recordAt reads the record whose etcd key begins at at: before it stand the
// field's tag and the key's length, after it the other fields in their order.
func recordAt(data []byte, at int) (foundRecord, bool) {
	n := keyLength(data[:at])
	if n == 0 || at+n > len(data) {
		return foundRecord{}, false
	}
	r := foundRecord{key: span{at, at + n}}
	rest := data[at+n:]
	var numbers [5]int64 // by field number: create, mod, version
	for {
		num, typ, tag := protowire.ConsumeTag(rest)
		if tag < 0 || num < 2 || num > 5 {
			return foundRecord{}, false
		}
		rest = rest[tag:]
		v, size := protowire.ConsumeVarint(rest)
		if size < 0 {
			return foundRecord{}, false
		}
		rest = rest[size:]
		if num == 5 {
			from := len(data) - len(rest)
			r.value = span{from, from + int(min(v, maxRecord+1))}
			r.create, r.mod = numbers[2], numbers[3]
			r.whole = r.create > 0 && r.mod >= r.create && numbers[4] > 0
			return r, typ == protowire.BytesType && v > 0
		}
		if typ != protowire.VarintType {
			return foundRecord{}, false
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
