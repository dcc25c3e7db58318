package snapshot

import (
	"cmp"

	"github.com/coreos/go-semver/semver"
	"go.etcd.io/etcd/api/v3/version"

	"github.com/etcdkit/etcdkit/internal/mvccdb"
)

// BootsIn returns the minor versions of etcd in which a member restored with this
// state boots: the one that wrote it, and the next one, as etcd upgrades one
// minor version at a time. An older one panics on the version of the cluster. It
// is empty where the state does not say, or says a version that is not known.
func BootsIn(s mvccdb.State) []string {
	lowest := version.V3_5 // which stores no storage version
	for _, text := range []string{s.StorageVersion, s.ClusterVersion} {
		v, err := semver.NewVersion(cmp.Or(text, "3.5.0"))
		if err != nil {
			return nil
		}
		if lowest.LessThan(*v) {
			lowest = semver.Version{Major: v.Major, Minor: v.Minor}
		}
	}
	var all []string
	newest := semver.Must(semver.NewVersion(version.Version))
	for _, v := range []semver.Version{lowest, {Major: lowest.Major, Minor: lowest.Minor + 1}} {
		if v.Major == newest.Major && v.Minor <= newest.Minor {
			all = append(all, minor(&v))
		}
	}
	return all
}
