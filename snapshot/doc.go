// Package snapshot takes, keeps, proves and restores backups of etcd.
//
// A repository is a store, a folder or an S3 bucket, that holds for each backup
//
//	<cluster id>/<time>-<member id>-<run>.db[.zst][.age]      the snapshot, as etcd sent it
//	<cluster id>/<time>-<member id>-<run>.json                its Manifest, written last
//	<cluster id>/<time>-<member id>-<run>.verify-<time>.json  one Verification each
//	<cluster id>/<time>-<member id>-<run>.seen.json           a run that found nothing changed
//
// A backup exists when its manifest does. The package prints nothing; what an
// operator should know comes back as data.
package snapshot
