// Package secrets tells, from the stored bytes, which Kubernetes objects are
// encrypted at rest and which are not: in a live cluster, a snapshot, a data
// directory. It reads keys and the marks at the beginning of values; nothing
// of an object's content gets into a result, an error or a log.
package secrets

import (
	"errors"
	"slices"

	"github.com/etcdkit/etcdkit/internal/kube"
	"github.com/etcdkit/etcdkit/internal/progress"
)

// Place is where a stored version of an object was found.
type Place string

// The places there are.
const (
	Live    Place = "live"    // what a read of the cluster returns
	History Place = "history" // older revisions and deleted objects that are not compacted
	Free    Place = "free"    // pages of the database file that are not in use any more
	WAL     Place = "wal"     // the write-ahead log, and databases received from a leader
	Other   Place = "other"   // files in the data directory that its member does not use
)

// Places lists all places, in the order of reports.
func Places() []Place { return []Place{Live, History, Free, WAL, Other} }

// State is the judgement on a stored version.
type State string

// The states there are.
const (
	Plain             State = "plain"               // in clear
	PlainAsConfigured State = "plain-as-configured" // in clear, and the configuration puts identity first
	Current           State = "current"             // as the API server would write it now
	CurrentProvider   State = "current-provider"    // by the right provider; with which key cannot be known
	Stale             State = "stale"               // encrypted, but not as it would be written now
	Encrypted         State = "encrypted"           // encrypted; without a configuration no more is known
	Unknown           State = "unknown"             // in no format that an API server writes
)

// Credentials is a condition of FailOn beside the states: something that looks
// like a credential was found in an object in clear.
const Credentials State = "credentials"

// States lists all states, the worst first.
func States() []State {
	return []State{Plain, Unknown, PlainAsConfigured, Stale, Encrypted, CurrentProvider, Current}
}

var (
	// ErrNotKubernetes says that a source holds no objects of Kubernetes under
	// the prefix asked for, or under any.
	ErrNotKubernetes = errors.New("no Kubernetes objects found")
	// ErrHit says that something is stored in a state that must not be.
	ErrHit = errors.New("stored objects are not encrypted as they must be")
	// ErrNotOpened says that a value cannot be decrypted with the keys given.
	ErrNotOpened = errors.New("stored objects do not open with the keys of the configuration")
	// ErrIncomplete says that a place could not be read, or not in whole.
	ErrIncomplete = errors.New("not everything could be read")
)

// Options says what to look for. The zero value looks for Secrets, under
// whatever prefix they are.
type Options struct {
	// Config tells which resources must be encrypted, and how. Without it
	// Secrets are looked at, and that they are encrypted is all that is known.
	Config *kube.EncryptionConfig
	// Prefixes are etcd prefixes of Kubernetes, as "/registry"; nil means
	// that they are found by looking.
	Prefixes []string
	// Known are prefixes that count beside those that are found by looking.
	Known []string
	// Places limits the scan; nil means every place that the source has.
	Places []Place
	// CurrentKeys are the ids of the current keys, by provider name, as the
	// key management plugins tell them.
	CurrentKeys map[string]string
	// Opener, if set, opens every value to prove that it can be.
	Opener *kube.Opener
	// Detect looks for what looks like credentials in every object in clear
	// but Secrets, and for that at all of Kubernetes' objects.
	Detect bool
	// MostNamed bounds the versions that are named one by one, in each place;
	// 0 means 25,000. All are counted.
	MostNamed int
	// Progress, if set, is told the bytes done and the bytes there are.
	Progress progress.Func

	// mayBeEmpty is set where it is known from elsewhere that this is a member
	// of Kubernetes' etcd, though its database has no object yet.
	mayBeEmpty bool
}

func (o Options) wants(p Place) bool {
	return o.Places == nil || slices.Contains(o.Places, p)
}

// Count is the number of stored versions of one kind.
type Count struct {
	Resource string `json:"resource"`
	Place    Place  `json:"place"`
	State    State  `json:"state"`
	Provider string `json:"provider,omitempty"`
	Key      string `json:"key,omitempty"`
	Count    int    `json:"count"`
}

// Finding is one stored version that is not known to be well encrypted.
type Finding struct {
	EtcdKey        string `json:"etcdKey"`
	Resource       string `json:"resource"`
	Namespace      string `json:"namespace,omitempty"`
	Name           string `json:"name"`
	Place          Place  `json:"place"`
	State          State  `json:"state"`
	Provider       string `json:"provider,omitempty"`
	Key            string `json:"key,omitempty"`
	Revision       int64  `json:"revision,omitempty"` // at which this version was written; not known in the WAL
	CreateRevision int64  `json:"createRevision,omitempty"`
	ModRevision    int64  `json:"modRevision,omitempty"`
	Index          uint64 `json:"index,omitempty"` // of the entry in the WAL
	File           string `json:"file,omitempty"`  // below the data directory, in Other
}

// Unopened is a stored version that the keys given do not open.
type Unopened struct {
	EtcdKey  string `json:"etcdKey"`
	Place    Place  `json:"place"`
	Revision int64  `json:"revision,omitempty"`
	Provider string `json:"provider,omitempty"`
	Key      string `json:"key,omitempty"`
	Reason   string `json:"reason"`
	// CannotTell is set where the plugin that has the key gave no answer.
	CannotTell bool `json:"cannotTell,omitempty"`
}

// Credential counts the stored versions in which a rule found what looks like
// a credential.
type Credential struct {
	Resource string `json:"resource"`
	Place    Place  `json:"place"`
	Rule     string `json:"rule"`
	Count    int    `json:"count"`
}

// Detection is one stored version that holds what looks like a credential.
type Detection struct {
	EtcdKey   string   `json:"etcdKey"`
	Resource  string   `json:"resource"`
	Namespace string   `json:"namespace,omitempty"`
	Name      string   `json:"name"`
	Place     Place    `json:"place"`
	Rules     []string `json:"rules"`
	Revision  int64    `json:"revision,omitempty"`
	Index     uint64   `json:"index,omitempty"` // of the entry in the WAL
	File      string   `json:"file,omitempty"`  // below the data directory, in Other
}

// Coverage tells how much of a place was read.
type Coverage struct {
	Place   Place  `json:"place"`
	Read    bool   `json:"read"` // in whole
	Bytes   int64  `json:"bytes,omitempty"`
	Objects int    `json:"objects"`          // stored versions looked at
	Reason  string `json:"reason,omitempty"` // why it was not read, or what limits the result
}

// NotScanned is a file in a data directory that is no database and no log.
type NotScanned struct {
	File   string `json:"file"` // below the data directory
	Reason string `json:"reason"`
	// Searched is set where the bytes of the file were searched for records.
	Searched bool `json:"searched"`
}

// KeyUse tells where a provider's key is in use: a key may leave the
// configuration when nothing is stored with it.
type KeyUse struct {
	Provider   string        `json:"provider"`
	Key        string        `json:"key,omitempty"`
	Configured bool          `json:"configured"` // the configuration has it
	Counts     map[Place]int `json:"counts"`
}

// Report is the result of a scan.
type Report struct {
	Source   string    `json:"source"`
	Revision int64     `json:"revision"`
	Prefixes []string  `json:"prefixes"`
	Summary  []Count   `json:"summary"`
	Findings []Finding `json:"findings"`
	// NotNamed counts what Findings leaves out, where there are very many.
	NotNamed int        `json:"findingsNotNamed,omitempty"`
	Places   []Coverage `json:"places"`
	// NotLookedAt are places that the scan was not asked for, or that the
	// source does not have.
	NotLookedAt []Place `json:"notLookedAt,omitempty"`
	// OtherPrefixes are those of control planes that the scan was not asked for.
	OtherPrefixes []string `json:"otherPrefixes,omitempty"`
	// NotScanned are files of a data directory that were not read as a database
	// or a log.
	NotScanned []NotScanned `json:"notScanned,omitempty"`
	Keys       []KeyUse     `json:"keys"`
	// Opened, NotOpened and CannotTell count what the decrypt check found:
	// values that open, that do not, and whose plugin gave no answer.
	Opened     int        `json:"opened,omitempty"`
	NotOpened  int        `json:"notOpened,omitempty"`
	CannotTell int        `json:"cannotTell,omitempty"`
	Unopened   []Unopened `json:"unopened,omitempty"` // those of both kinds, as Findings bounded in number
	// Credentials and Detected are what Detect asked for, the latter bounded
	// in number as Findings.
	Credentials []Credential `json:"credentials,omitempty"`
	Detected    []Detection  `json:"detected,omitempty"`
	Damage      []string     `json:"damage,omitempty"`
	// DamageCount counts all damage; Damage names the first of it.
	DamageCount int `json:"damageCount,omitempty"`
	// ChangedWhileReading is set when a running member changed the file more
	// often than it could be read in one go.
	ChangedWhileReading bool `json:"changedWhileReading,omitempty"`
	// Next is what to do, in order.
	Next []Step `json:"next,omitempty"`
}

// Step is one thing to do next.
type Step struct {
	Why     string `json:"why"`
	Command string `json:"command,omitempty"`
}

// mostNamed bounds the findings that a report names in each place: a cluster
// that encrypts nothing, scanned for everything, has millions.
const mostNamed = 25_000

// maxDamage bounds the damage that a report names.
const maxDamage = 100

// damage notes something that could not be read.
func (r *Report) damage(what string) {
	r.DamageCount++
	if len(r.Damage) < maxDamage {
		r.Damage = append(r.Damage, what)
	}
}
