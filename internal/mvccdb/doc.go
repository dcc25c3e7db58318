// Package mvccdb reads etcd's database files: snapshots, and the db file of a
// data directory, of a stopped or a running member. It never writes, takes no
// lock, maps nothing into memory and checks every byte that it follows, so a
// damaged file costs an error and never a crash.
//
// Open takes an io.ReaderAt and the file's size and reads the two meta pages:
//
//	db, err := mvccdb.Open(file, size) // an error: no database, or none that can be read at all
//
// What is wrong with a file is a *Damage, which says what and where, and
// matches ErrDamaged. ErrNotDatabase is what something else gets.
//
// Reading many records goes through Scan, which cuts the file into batches,
// works on them with all cores, and hands the results on in file order:
//
//	err := mvccdb.Scan(ctx, db, mvccdb.Options{Buckets: []string{mvccdb.KeyBucket}},
//		func(b *mvccdb.Batch) (int, error) { // on all cores at once, batch by batch
//			return countSecrets(b.Records), nil
//		},
//		func(n int) error { // one at a time, in file order
//			total += n
//			return nil
//		})
//
// Everything in a Batch is valid only until the function returns. Records are
// the decoded revisions of the key bucket; every other bucket has Elements.
// Options.Damage decides whether the scan goes on after damage.
//
// Built on Scan are Check (everything about a file in one pass: structure,
// every revision decoded, HashKV, etcdutl's hash, counts, trailer) and HashKV.
// State decodes the small buckets. Keys is a compact table of every key's last
// revision, 16 bytes a key.
//
// Pages that no tree reaches keep old data until they are used again. A full
// scan marks what is reachable in Options.Reached; Unreachable then lists the
// rest in runs, ReadPages gives their bytes, and Salvage finds what is left of
// a leaf page in them.
//
// A running member writes new pages beside the old ones and then switches a
// meta page. Refresh reads the meta pages again and tells whether that
// happened: damage found in between may be nothing but the member's work.
package mvccdb
