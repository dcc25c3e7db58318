package mvccdb

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"math/big"
)

// TrailerUnit is the size that etcd's snapshots are a multiple of before the
// SHA-256 of their content is appended.
const TrailerUnit = 512

// DB is a database file opened for reading. It is safe for concurrent use but
// for Refresh.
type DB struct {
	r      io.ReaderAt
	size   int64 // bytes of the database, without trailer
	file   int64 // bytes of the file
	meta   meta
	metaAt int64     // where it stands
	damage []*Damage // what Open worked around: one broken meta page, or an end that is missing
}

// Open reads the meta pages of the size bytes that r serves. It fails where
// the file is no database (ErrNotDatabase) or no meta page can be used
// (ErrDamaged). What it can work around, a Scan tells first.
func Open(r io.ReaderAt, size int64) (*DB, error) {
	db := &DB{r: r, size: size, file: size}
	if db.HasTrailer() {
		db.size -= sha256.Size
	}
	if err := db.readMeta(); err != nil {
		return nil, err
	}
	return db, nil
}

// HasTrailer reports whether the file's size says that a SHA-256 follows the
// database, as in every snapshot that etcd sends.
func (db *DB) HasTrailer() bool { return HasTrailer(db.file) }

// HasTrailer reports whether a file of that many bytes ends with a SHA-256.
func HasTrailer(size int64) bool { return size%TrailerUnit == sha256.Size }

// Size returns the size of the database in bytes: of the file, without the
// trailer.
func (db *DB) Size() int64 { return db.size }

// PageSize returns the size of a page in bytes.
func (db *DB) PageSize() int { return int(db.meta.pageSize) }

// Refresh reads the meta pages again and reports whether a member changed the
// file since they were read last. The file may have grown to size.
func (db *DB) Refresh(size int64) (changed bool, err error) {
	before := db.meta
	fresh := &DB{r: db.r, size: size, file: size}
	if fresh.HasTrailer() {
		fresh.size -= sha256.Size
	}
	if err := fresh.readMeta(); err != nil {
		return true, err
	}
	*db = *fresh
	return db.meta != before, nil
}

// readMeta chooses the meta page that counts.
func (db *DB) readMeta() error {
	first, err := db.readMetaPage(0, 0)
	if err != nil {
		return err
	}
	if first.wrong != "" {
		if err := db.notDatabase(); err != nil {
			return err
		}
	}
	second, err := db.findSecondMeta(first)
	if err != nil {
		return err
	}
	if first.wrong != "" && second.wrong != "" {
		return &Damage{Page: NoPage, What: first.wrong + ", and " + second.wrong}
	}
	use := first
	if first.wrong != "" || (second.wrong == "" && second.meta.txid > first.meta.txid) {
		use = second
	}
	db.meta, db.metaAt = use.meta, use.offset
	db.noteMetaDamage(first, second)
	db.noteTruncation()
	return nil
}

// noteMetaDamage records what is wrong with meta pages beside the chosen one.
func (db *DB) noteMetaDamage(pages ...metaPage) {
	db.damage = nil
	for i, p := range pages {
		d := &Damage{Page: uint64(i), Offset: p.offset}
		switch {
		case p.wrong != "":
			d.What = p.wrong
		case p.header != "":
			d.What = p.header
		case p.meta.pageSize != db.meta.pageSize:
			d.What = fmt.Sprintf("meta page %d gives another page size than the other one", i)
		default:
			continue
		}
		db.damage = append(db.damage, d)
	}
}

// noteTruncation records that pages in use lie behind the end of the file.
func (db *DB) noteTruncation() {
	if db.present() == db.meta.pages {
		return
	}
	// In big numbers: a meta page can claim anything.
	want := new(big.Int).Mul(new(big.Int).SetUint64(db.meta.pages), big.NewInt(int64(db.meta.pageSize)))
	db.damage = append(db.damage, &Damage{
		Page: NoPage, Offset: db.file,
		What: fmt.Sprintf("the file is truncated: %d bytes, and the database needs %d", db.file, want),
	})
}

// metaPage is one of the two meta pages as found.
type metaPage struct {
	meta   meta
	offset int64
	wrong  string // why it cannot be used
	header string // what is wrong with its page header, which does not matter for reading
}

func (db *DB) readMetaPage(index int, offset int64) (metaPage, error) {
	p := metaPage{offset: offset}
	buf := make([]byte, metaEnd)
	switch n, err := db.r.ReadAt(buf, offset); {
	case n == len(buf):
	case err == nil || errors.Is(err, io.EOF):
		p.wrong = fmt.Sprintf("meta page %d is missing", index)
		return p, nil
	default:
		return p, fmt.Errorf("read meta page %d: %w", index, err)
	}
	p.meta, p.wrong = parseMeta(buf, index)
	p.header = metaHeaderFault(buf, index)
	return p, nil
}

// findSecondMeta reads meta page 1. Where page 0 is broken its place is not
// known, and every possible page size is tried.
func (db *DB) findSecondMeta(first metaPage) (metaPage, error) {
	if first.wrong == "" {
		return db.readMetaPage(1, int64(first.meta.pageSize))
	}
	const usual = 4096
	fallback := metaPage{offset: usual, wrong: "meta page 1 has no database mark"}
	for size := int64(minPageSize); size <= maxPageSize && size < db.size; size *= 2 {
		p, err := db.readMetaPage(1, size)
		if err != nil {
			return p, err
		}
		if p.wrong == "" && int64(p.meta.pageSize) == size {
			return p, nil
		}
		if size == usual {
			fallback = p
			if p.wrong == "" {
				fallback.wrong = "meta page 1 gives another page size than its place"
			}
		}
	}
	return fallback, nil
}

// readAt fills b. What lies behind the end of the file is damage of the page
// there.
func (db *DB) readAt(b []byte, offset int64) error {
	n, err := db.r.ReadAt(b, offset)
	if n == len(b) {
		return nil
	}
	if err == nil || errors.Is(err, io.EOF) {
		ps := int64(db.meta.pageSize)
		return &Damage{Page: uint64(offset / ps), Offset: offset + int64(n), What: "the file ends inside the page"}
	}
	return err
}

// present returns the number of pages that are in use by the meta page and
// lie in the file.
func (db *DB) present() uint64 {
	return min(db.meta.pages, uint64(db.size)/uint64(db.meta.pageSize))
}
