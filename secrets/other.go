package secrets

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/etcdkit/etcdkit/internal/mvccdb"
)

// maxFolders bounds how deep folders are entered.
const maxFolders = 32

// others scans the files below a data directory that its member does not use:
// an old member that a restore moved aside, copies of the database, old logs.
// What is neither a database nor a log is searched for records by its bytes, and
// named.
func (d *dataDir) others(ctx context.Context, s *databaseScan, dir string) error {
	o := &otherScan{databaseScan: s, root: dir}
	o.use(filepath.Join(d.member, "snap", "db"), d.opts.WALDir)
	o.enter(d.member, filepath.Join(d.member, "snap"))
	before := s.report.DamageCount
	if err := o.folder(ctx, dir, 0); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	reason := ""
	switch {
	case o.failed != "":
		reason = o.failed
	case s.report.DamageCount > before:
		reason = "some files are damaged"
	}
	s.tally.place(Other, reason == "", o.bytes, reason)
	return nil
}

// otherScan is the scan of files that a member does not use.
type otherScan struct {
	*databaseScan
	root   string
	inUse  []fs.FileInfo // files and folders that were scanned already
	linked []fs.FileInfo // folders that are entered behind a link, too
	bytes  int64
	failed string // the first thing that could not be read
}

// use notes what is scanned as another place.
func (o *otherScan) use(paths ...string) {
	for _, path := range paths {
		if info, err := os.Stat(path); err == nil {
			o.inUse = append(o.inUse, info)
		}
	}
}

func (o *otherScan) enter(paths ...string) {
	for _, path := range paths {
		if info, err := os.Stat(path); err == nil {
			o.linked = append(o.linked, info)
		}
	}
}

func isOneOf(info fs.FileInfo, known []fs.FileInfo) bool {
	for _, other := range known {
		if os.SameFile(info, other) {
			return true
		}
	}
	return false
}

// skip names a file that is not scanned. Its place is not read in whole then.
func (o *otherScan) skip(path, reason string) {
	o.note(path, reason, false)
	if o.failed == "" {
		o.failed = fmt.Sprintf("%s: %s", o.short(path), reason)
	}
}

func (o *otherScan) note(path, reason string, searched bool) {
	o.report.NotScanned = append(o.report.NotScanned, NotScanned{File: o.short(path), Reason: reason, Searched: searched})
}

// short is a path below the data directory.
func (o *otherScan) short(path string) string {
	if rel, err := filepath.Rel(o.root, path); err == nil {
		return rel
	}
	return path
}

// folder scans the files of a folder. A link to a folder is followed only to the
// member's own ones.
func (o *otherScan) folder(ctx context.Context, dir string, depth int) error {
	if depth > maxFolders {
		o.skip(dir, "too deep")
		return nil
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		o.skip(dir, cause(err))
	}
	for _, e := range entries {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		path := filepath.Join(dir, e.Name())
		info, err := os.Stat(path)
		switch link := e.Type()&fs.ModeSymlink != 0; {
		case errors.Is(err, fs.ErrNotExist) && !link: // removed meanwhile
		case err != nil && link:
			o.note(path, "a link to nothing that can be read: "+cause(err), false)
		case err != nil:
			o.skip(path, cause(err))
		case isOneOf(info, o.inUse):
		case info.IsDir() && link && !isOneOf(info, o.linked):
			o.skip(path, "a link to another folder")
		case info.IsDir():
			if err := o.folder(ctx, path, depth+1); err != nil {
				return err
			}
		case !info.Mode().IsRegular():
			o.note(path, "not a regular file", false)
		default:
			if err := o.file(ctx, path, info); err != nil {
				return err
			}
		}
	}
	return nil
}

// cause is the reason of an error without the path, which is told beside it.
func cause(err error) string {
	if pathErr, ok := errors.AsType[*fs.PathError](err); ok {
		return pathErr.Err.Error()
	}
	return err.Error()
}

// file scans a file by what it is.
func (o *otherScan) file(ctx context.Context, path string, info fs.FileInfo) error {
	if info.Size() == 0 || filepath.Base(filepath.Dir(path)) == "snap" && isReceived(info.Name()) && o.wants(WAL) && o.ofMember(path) {
		return nil
	}
	o.inUse = append(o.inUse, info) // hard links to it need no second scan
	if isSegment(path) {
		log := o.log(ctx, Other, o.short(path))
		err := log.file(path)
		o.bytes += log.bytes
		return o.fileError(ctx, path, err)
	}
	size, err := o.beside(ctx, path, Other, o.short(path))
	o.bytes += size
	if errors.Is(err, errNoMark) {
		if !strings.HasSuffix(path, ".snap") { // of raft: a member's usual files
			o.note(path, "neither a database nor a log", true)
		}
		return nil
	}
	return o.fileError(ctx, path, err)
}

// beside scans a file beside the database in use, and counts what it holds in
// one place. One that cannot be read as a database is searched by its bytes.
func (s *databaseScan) beside(ctx context.Context, path string, place Place, file string) (size int64, err error) {
	f, size, err := openRegular(path)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	opts := s.opts
	opts.Places, opts.Progress, opts.Opener, opts.mayBeEmpty = nil, nil, nil, true
	opts.Known = union(opts.Known, s.scope.prefixes)
	other, err := scanFile(ctx, OSFile{f}, opts)
	switch {
	case ctx.Err() != nil, errors.Is(err, fs.ErrNotExist):
		return size, err
	case err != nil && size > 0 && !errors.Is(err, mvccdb.ErrPacked) && !hasMark(f):
		return size, errors.Join(errNoMark, s.searchBytes(ctx, f, size, place, file))
	case err != nil:
		return size, errors.Join(err, s.searchBytes(ctx, f, size, place, file))
	}
	s.tally.merge(place, other.tally, file)
	for _, p := range other.report.Places {
		if !p.Read {
			return size, fmt.Errorf("%w: %s", ErrIncomplete, p.Reason)
		}
	}
	return size, nil
}

// errNoMark says that a file is neither a database nor packed.
var errNoMark = errors.New("not a database")

// hasMark reports whether a file has a meta page of a database, which may be damaged.
func hasMark(f io.ReaderAt) bool {
	mark := make([]byte, 4)
	for _, page := range []int64{0, 1 << 10, 1 << 11, 1 << 12, 1 << 13, 1 << 14, 1 << 15, 1 << 16} {
		if n, _ := f.ReadAt(mark, page+pageHeader); n == len(mark) && binary.LittleEndian.Uint32(mark) == 0xed0cdaed {
			return true
		}
	}
	return false
}

// searched judges a record that was found by its bytes. The first result, which
// stands for the version, is nil for what is not looked at or cannot be told.
func (s *databaseScan) searched(ctx context.Context, data []byte, rec foundRecord, file string) ([]byte, version) {
	etcdKey := rec.key.of(data)
	k, ok := s.scope.match(etcdKey)
	if !ok {
		return nil, version{}
	}
	v, told := s.judge.value(ctx, k, stored{
		etcdKey: etcdKey, value: rec.value.of(data), complete: rec.value.to <= len(data),
		stamp: stamp{create: rec.create, mod: rec.mod, file: file},
	})
	if !told || !rec.whole && v.class.State == Unknown {
		return nil, version{}
	}
	return binary.BigEndian.AppendUint64(slices.Clip(etcdKey), uint64(rec.mod)), v
}

// searchBytes searches a file for records of a database and for puts of a log by
// their bytes, and for Secrets in clear.
func (s *databaseScan) searchBytes(ctx context.Context, f io.ReaderAt, size int64, place Place, file string) error {
	seen := mvccdb.NewKeys()
	add := func(what []byte, v version) {
		if _, known := seen.Set(seen.ID(binary.BigEndian.AppendUint32(slices.Clip(what), v.class.number)), 0); !known {
			s.tally.add(place, v)
		}
	}
	return windows(f, size, func(data []byte, from, limit int) error {
		judged := make(map[int]bool) // beginnings of values
		for _, dir := range s.scope.dirs {
			for at := range occurrences(data, dir, from, limit) {
				rec, ok := recordAt(data, at)
				if !ok {
					rec, ok = putAt(data, at)
				}
				if !ok {
					continue
				}
				judged[rec.value.from] = true
				what, v := s.searched(ctx, data, rec, file)
				if what != nil {
					add(what, v)
				}
			}
		}
		for _, mark := range secretMarks() {
			for at := range occurrences(data, []byte(mark), from, limit) {
				if what, v := s.orphan(data[at:], mark, file); !judged[at] && what != nil {
					add(what, v)
				}
			}
		}
		return ctx.Err()
	})
}

// ofMember reports whether a file is in the folder of the member that was scanned.
func (o *otherScan) ofMember(path string) bool {
	info, err := os.Stat(filepath.Dir(path))
	return err == nil && isOneOf(info, o.linked)
}

// wants reports whether a place is scanned.
func (o *otherScan) wants(p Place) bool { return o.opts.wants(p) }

func (o *otherScan) fileError(ctx context.Context, path string, err error) error {
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		o.skip(path, cause(err))
	}
	return nil
}
