package mvccdb

import (
	"errors"
	"fmt"
)

// ErrDamaged is matched by every *Damage.
var ErrDamaged = errors.New("database file is damaged")

// ErrNotDatabase tells that a file is no etcd database at all.
var ErrNotDatabase = errors.New("not an etcd database file")

// NoPage is the Page of a Damage that concerns no single page.
const NoPage = ^uint64(0)

// Damage is one thing that is wrong with a database file, and where.
type Damage struct {
	Page   uint64 // the page that is wrong, or NoPage
	Offset int64  // the place in the file, in bytes
	Bucket string // the bucket whose tree led there, "" for the file itself
	What   string // what is wrong, as a clause
}

// Error says what is wrong and where.
func (d *Damage) Error() string {
	switch {
	case d.Page == NoPage:
		return d.What
	case d.Bucket == "":
		return fmt.Sprintf("page %d, byte %d: %s", d.Page, d.Offset, d.What)
	default:
		return fmt.Sprintf("page %d, byte %d, bucket %q: %s", d.Page, d.Offset, d.Bucket, d.What)
	}
}

// Is makes every Damage match ErrDamaged.
func (d *Damage) Is(target error) bool { return target == ErrDamaged }
