package mvccdb

import (
	"bytes"
	"context"
)

// Each calls fn for every element of one bucket, in key order. A bucket that
// the file does not have is empty. fn may keep what it gets. Damage of the
// file beside that bucket is of no concern here.
func (db *DB) Each(ctx context.Context, bucket string, fn func(Element) error) error {
	opts := Options{Buckets: []string{bucket}, Workers: 1, Damage: func(d *Damage) error {
		if d.Bucket != bucket && d.Bucket != "" {
			return nil
		}
		if d.Page <= 1 || d.Page == NoPage {
			return nil // Open's, told by DB.Damage
		}
		return d
	}}
	return Scan(ctx, db, opts, copyElements, func(list []Element) error {
		for _, e := range list {
			if err := fn(e); err != nil {
				return err
			}
		}
		return nil
	})
}

func copyElements(b *Batch) ([]Element, error) {
	list := make([]Element, len(b.Elements))
	for i, e := range b.Elements {
		e.RawKey, e.RawValue = bytes.Clone(e.RawKey), bytes.Clone(e.RawValue)
		list[i] = e
	}
	return list, nil
}
