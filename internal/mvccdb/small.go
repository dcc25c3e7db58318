package mvccdb

import (
	"bytes"
	"context"
	"slices"
)

// elements are copied from a batch.
type elements struct {
	bucket string
	list   []Element
}

// small calls fn for every element of small buckets, in key order. One that
// the file does not have is empty. fn may keep what it gets. Damage of the file
// beside those buckets is of no concern here.
func (db *DB) small(ctx context.Context, buckets []string, fn func(bucket string, e Element) error) error {
	opts := Options{Buckets: buckets, Workers: 1, Damage: func(d *Damage) error {
		if d.Page <= 1 || d.Page == NoPage || (d.Bucket != "" && !slices.Contains(buckets, d.Bucket)) {
			return nil // of the file, or of another bucket
		}
		return d
	}}
	return Scan(ctx, db, opts, copyElements, func(e elements) error {
		for _, el := range e.list {
			if err := fn(e.bucket, el); err != nil {
				return err
			}
		}
		return nil
	})
}

func copyElements(b *Batch) (elements, error) {
	list := make([]Element, len(b.Elements))
	for i, e := range b.Elements {
		e.RawKey, e.RawValue = bytes.Clone(e.RawKey), bytes.Clone(e.RawValue)
		list[i] = e
	}
	return elements{b.Bucket, list}, nil
}
