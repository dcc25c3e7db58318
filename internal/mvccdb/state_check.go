package mvccdb

import (
	"bytes"
	"errors"
	"fmt"
	"math/bits"
	"slices"

	"github.com/coreos/go-semver/semver"
	"google.golang.org/protobuf/proto"
)

// bucketNames are the buckets that etcd keeps. It makes one that it does not
// find, empty.
func bucketNames() []string {
	return []string{KeyBucket, MetaBucket, LeaseBucket, AlarmBucket, ClusterBucket, MembersBucket, removedBucket, AuthBucket, UsersBucket, RolesBucket}
}

const removedBucket = "members_removed"

// Names of single records, by bucket. etcd takes one that it does not find as
// never written.

func metaNames() []string {
	return []string{"consistent_index", "term", "confState", "storageVersion", "scheduledCompactRev", "finishedCompactRev"}
}

func clusterNames() []string { return []string{"clusterVersion", "downgrade"} }

func authNames() []string { return []string{"authEnabled", "authRevision"} }

// bucketDamage tells what is wrong with the names of all buckets.
func bucketDamage(names []string) (wrong []*Damage) {
	for _, name := range names {
		if known := nearMiss([]byte(name), bucketNames()); known != "" {
			wrong = append(wrong, &Damage{Page: NoPage, What: fmt.Sprintf("there is a bucket %q, which must be %q", name, known)})
		}
	}
	for _, name := range []string{KeyBucket, MetaBucket} {
		if !slices.Contains(names, name) {
			wrong = append(wrong, &Damage{Page: NoPage, What: fmt.Sprintf("there is no bucket %q: a bbolt database, but not etcd's", name)})
		}
	}
	return wrong
}

// maxFlipped is how many bits of a name may differ from a known one for it to
// be that name, damaged. Names that a later etcd adds differ in more.
const maxFlipped = 2

// nearMiss returns the known name that a damaged one must have been, "" for a
// known name and for a new one.
func nearMiss(name []byte, known []string) string {
	if slices.Contains(known, string(name)) {
		return ""
	}
	for _, k := range known {
		if len(k) != len(name) {
			continue
		}
		flipped := 0
		for i := range name {
			flipped += bits.OnesCount8(name[i] ^ k[i])
		}
		if flipped <= maxFlipped {
			return k
		}
	}
	return ""
}

// checkName fails if a record's name is a damaged one.
func checkName(e Element, known []string) error {
	if k := nearMiss(e.RawKey, known); k != "" {
		return fmt.Errorf("there is a record %q, which must be %q", e.RawKey, k)
	}
	return nil
}

// checkVersion fails if a version that etcd will parse is none.
func checkVersion(e Element) error {
	if len(e.RawValue) == 0 {
		return nil
	}
	if _, err := semver.NewVersion(string(e.RawValue)); err != nil {
		return fmt.Errorf("%q is %q, which is not a version", e.RawKey, e.RawValue)
	}
	return nil
}

var errNotCanonical = errors.New("it holds fields that etcd never writes, or in another way than etcd does")

// decodeExact decodes a message and fails if etcd would have written the same
// message in another way.
func decodeExact(raw []byte, to proto.Message) error {
	if err := (proto.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(raw, to); err != nil {
		return err
	}
	again, err := proto.MarshalOptions{Deterministic: true}.Marshal(to)
	if err != nil {
		return err
	}
	if !bytes.Equal(again, raw) {
		return errNotCanonical
	}
	return nil
}
