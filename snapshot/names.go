package snapshot

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"
)

// Parts of the names in a repository, see the package documentation.
const (
	timeFormat     = "20060102T150405Z"
	verifyFormat   = "20060102T150405.000Z" // two within a second must not be one
	manifestSuffix = ".json"
	dataSuffix     = ".db"
	zstdSuffix     = ".zst"
	ageSuffix      = ".age"
	seenSuffix     = ".seen.json"
	verifyInfix    = ".verify-"
	memberDigits   = 16
	runDigits      = 8
)

// baseName returns the name of a backup, without any ending.
func baseName(at time.Time, memberID uint64, run string) string {
	return fmt.Sprintf("%s-%016x-%s", at.UTC().Format(timeFormat), memberID, run)
}

// newRun returns the random id of a run.
func newRun() string {
	b := make([]byte, runDigits/2)
	_, _ = rand.Read(b) // never fails, by its contract
	return hex.EncodeToString(b)
}

// object is what the name of a stored object says.
type object struct {
	cluster string // the folder, 16 hex digits
	base    string // the backup's name
	member  string
	run     string
	at      time.Time
	kind    kind
}

type kind int

const (
	kindData kind = iota
	kindManifest
	kindVerified // a verification record
	kindSeen     // a run that found nothing changed
	kindSignature
)

// parseKey takes a key of a repository apart. It returns false for whatever
// this program did not write.
func parseKey(key string) (object, bool) {
	if record, ok := strings.CutSuffix(key, signatureSuffix); ok {
		o, ok := parseKey(record)
		if !ok || o.kind == kindData || o.kind == kindSignature {
			return object{}, false
		}
		o.kind = kindSignature
		return o, true
	}
	cluster, file := path.Split(key)
	cluster = strings.TrimSuffix(cluster, "/")
	base, ending, ok := strings.Cut(file, ".")
	if !ok || !isHex(cluster, memberDigits) {
		return object{}, false
	}
	at, run, ok := parseBase(base)
	if !ok {
		return object{}, false
	}
	o := object{cluster: cluster, base: base, member: strings.Split(base, "-")[1], run: run, at: at}
	switch ending = "." + ending; {
	case ending == manifestSuffix:
		o.kind = kindManifest
	case ending == seenSuffix:
		o.kind = kindSeen
	case strings.HasPrefix(ending, verifyInfix) && strings.HasSuffix(ending, manifestSuffix):
		o.kind = kindVerified
	case isDataEnding(ending):
		o.kind = kindData
	default:
		return object{}, false
	}
	return o, true
}

func parseBase(base string) (at time.Time, run string, ok bool) {
	parts := strings.Split(base, "-")
	if len(parts) != 3 || !isHex(parts[1], memberDigits) || !isHex(parts[2], runDigits) {
		return at, "", false
	}
	at, err := time.Parse(timeFormat, parts[0])
	return at, parts[2], err == nil
}

func isDataEnding(ending string) bool { return slices.Contains(dataEndings(), ending) }

// dataEndings are the endings that a data object may have.
func dataEndings() []string {
	return []string{dataSuffix, dataSuffix + zstdSuffix, dataSuffix + ageSuffix, dataSuffix + zstdSuffix + ageSuffix}
}

// isHex reports whether s is digits lower-case hexadecimal digits.
func isHex(s string, digits int) bool {
	return len(s) == digits && strings.Trim(s, "0123456789abcdef") == ""
}

// validLabel reports whether key may name a label.
func validLabel(key string) bool {
	return regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._/-]{0,62}$`).MatchString(key)
}

func id(n uint64) string { return fmt.Sprintf("%016x", n) }
