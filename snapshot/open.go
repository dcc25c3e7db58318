package snapshot

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"

	"filippo.io/age"

	"github.com/etcdkit/etcdkit/internal/hint"
	"github.com/etcdkit/etcdkit/internal/regular"
	"github.com/etcdkit/etcdkit/internal/store"
)

// Opened is a snapshot that is being read, decrypted and decompressed. Reading
// ends with io.EOF only if the snapshot is whole and, where a manifest tells,
// the one that was stored.
type Opened struct {
	io.ReadCloser
	Name     string // for messages
	Size     int64  // of the snapshot, 0 if unknown
	Manifest *Manifest
	Notes    []string // what the user should know

	backup *Backup // nil for a file
}

// Pinned returns what names the snapshot that source led to: the same in an hour
// and on another machine, where latest may be another one.
func (o *Opened) Pinned(source string) string {
	if o.backup == nil {
		return source
	}
	location, _, _ := splitSource(source)
	return location + o.backup.ClusterID + "/" + o.backup.Name
}

// OpenOptions says how to open what a SOURCE names.
type OpenOptions struct {
	Identities []age.Identity
	AnyQuorum  bool // latest may be a backup that was taken without quorum
	OlderOK    bool // latest may be older than one that cannot be used
	// AnyTrailer reads on where the SHA-256 at the end is missing or wrong.
	// What a manifest says is checked anyway.
	AnyTrailer bool
	Signing    Signing // of a file; a repository has its own
	// OpenStore opens the repository at a location.
	OpenStore func(ctx context.Context, location string) (store.Store, error)
}

// OpenSource opens the snapshot that source names: a file, a repository (which
// means its latest backup), or a repository followed by latest or a name.
func OpenSource(ctx context.Context, source string, opts OpenOptions) (*Opened, error) {
	if !store.IsS3(source) {
		if info, err := os.Stat(source); err == nil && info.Mode().IsRegular() {
			return openFile(ctx, source, opts)
		}
	}
	location, cluster, name := splitSource(source)
	if err := isThere(location); err != nil {
		return nil, err
	}
	repo, err := opts.OpenStore(ctx, location)
	if err != nil {
		return nil, err
	}
	return OpenBackup(ctx, repo, cluster, name, opts)
}

// isThere fails if location is a folder that is not there.
func isThere(location string) error {
	if strings.Contains(location, "://") {
		return nil
	}
	if _, err := os.Stat(location); err != nil {
		return hint.With(err, "SOURCE is a snapshot file, a repository, or a backup in one")
	}
	return nil
}

// splitSource takes a source apart into the repository, the cluster's folder
// in it if given, and what is wanted of it.
func splitSource(source string) (location, cluster, name string) {
	scheme, root := "", ""
	if store.IsS3(source) {
		scheme, source = "s3://", strings.TrimPrefix(source, "s3://")
	} else {
		source, root = filepath.ToSlash(source), "."
		if path.IsAbs(source) {
			root = ""
		}
	}
	name = "latest"
	last := path.Base(source)
	base, _, _ := strings.Cut(last, ".")
	if _, _, named := parseBase(base); last == "latest" || named {
		name, source = last, strings.TrimSuffix(source, last)
	}
	source = strings.TrimSuffix(source, "/")
	if last := path.Base(source); isHex(last, memberDigits) {
		cluster, source = last, strings.TrimSuffix(strings.TrimSuffix(source, last), "/")
	}
	if source == "" {
		source = root
	}
	return scheme + source + "/", cluster, name
}

// OpenBackup opens a backup of a repository by its name, or the latest.
func OpenBackup(ctx context.Context, repo store.Store, cluster, name string, opts OpenOptions) (*Opened, error) {
	b, all, err := Choose(ctx, repo, Choice{Cluster: cluster, Name: name, AnyQuorum: opts.AnyQuorum, OlderOK: opts.OlderOK})
	if err != nil {
		return nil, err
	}
	if b.Problem != "" {
		return nil, fmt.Errorf("open backup %s: %w: %s", b.Name, ErrIncomplete, b.Problem)
	}
	body, _, err := repo.Get(ctx, b.key(b.Data))
	if err != nil {
		return nil, err
	}
	o, err := open(ctx, body, b.Name, &b.Manifest, opts)
	if err != nil {
		return nil, err
	}
	o.backup = b
	if lineages := Lineages(all); isLatest(name) && len(lineages) > 1 {
		o.Notes = append(o.Notes, fmt.Sprintf("the repository holds %d lineages; this is the newest one's, %s", len(lineages), b.Lineage))
	}
	if isLatest(name) {
		o.Notes = append(o.Notes, passedOver(all, b)...)
	}
	if !b.Quorum {
		o.Notes = append(o.Notes, "this backup was taken from a member without quorum and may be old")
	}
	return o, nil
}

// passedOver says which younger backups are not the latest, and why.
func passedOver(all []*Backup, latest *Backup) (notes []string) {
	for _, b := range all {
		why := b.Problem
		if why == "" && !b.Quorum {
			why = "taken without quorum"
		}
		if v := b.Verified; why == "" && v != nil && !v.OK {
			why = "found damaged"
		}
		if why != "" && b.ClusterID == latest.ClusterID && b.CreatedAt.After(latest.CreatedAt) {
			notes = append(notes, fmt.Sprintf("the younger backup %s is passed over: %s", b.Name, why))
		}
	}
	return notes
}

// openFile opens a file, with the manifest beside it where there is one.
func openFile(ctx context.Context, name string, opts OpenOptions) (*Opened, error) {
	m, err := opts.Signing.ManifestOf(name)
	if err != nil {
		return nil, err
	}
	dir, file := filepath.Split(name)
	body, _, err := store.NewFolder(dir).Get(ctx, file)
	if err != nil {
		return nil, err
	}
	return open(ctx, body, name, m, opts)
}

// ManifestOf reads the manifest that belongs to a file, nil if there is none:
// FILE.json, or in a repository the name without its ending.
func ManifestOf(name string) (*Manifest, error) { return Signing{}.ManifestOf(name) }

// ManifestOf reads the manifest that belongs to a file. Where only what is signed
// counts, a file without a signed manifest is ErrUntrusted; else the manifest is
// nil if there is none.
func (s Signing) ManifestOf(name string) (*Manifest, error) {
	m, err := s.manifestOf(name)
	if err == nil && m == nil && s.Trusting() {
		err = fmt.Errorf("%s: %w: there is no manifest beside it", name, ErrUntrusted)
	}
	return m, err
}

func (s Signing) manifestOf(name string) (*Manifest, error) {
	names := []string{name + manifestSuffix}
	base, _, _ := strings.Cut(filepath.Base(name), ".")
	if _, _, ok := parseBase(base); ok {
		names = append(names, filepath.Join(filepath.Dir(name), base+manifestSuffix))
	}
	for _, candidate := range names {
		raw, err := regular.ReadFile(candidate, maxManifest)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("read manifest: %w", err)
		}
		if err := s.checkFile(candidate, raw); err != nil {
			return nil, err
		}
		m, err := parseManifest(raw)
		if err != nil {
			return nil, fmt.Errorf("read manifest %s: %w", candidate, err)
		}
		if m.Data == filepath.Base(name) {
			return m, nil
		}
	}
	return nil, nil
}

// Describes fails if a plain snapshot is not the one that was stored.
func (m *Manifest) Describes(c Copied) error {
	if hex.EncodeToString(c.FileSHA256[:]) != m.SnapshotSHA256 || m.StoredSHA256 != m.SnapshotSHA256 {
		return fmt.Errorf("%w: %w", ErrIncomplete, errOther)
	}
	return nil
}

// errOther tells of bytes that are not those of the manifest.
var errOther = errors.New("it is not what its manifest describes")

// open decodes body and holds it against the manifest. Reading ends with ctx.
func open(ctx context.Context, body io.ReadCloser, name string, m *Manifest, opts OpenOptions) (*Opened, error) {
	stored := newCounted(withContext{ctx, body})
	plain, _, err := decode(stored, opts.Identities)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open %s: %w", name, err), body.Close())
	}
	o := &Opened{Name: name, Manifest: m}
	v := &verified{checked: newChecked(m.bound(plain)), stored: stored, manifest: m, name: name}
	v.lenient = opts.AnyTrailer
	if m != nil {
		o.Size = m.SnapshotBytes
	}
	o.ReadCloser = struct {
		io.Reader
		io.Closer
	}{v, closers{plain, body}}
	return o, nil
}

// verified ends with io.EOF only if what was read is what the manifest says.
type verified struct {
	*checked
	stored   *counted
	manifest *Manifest
	name     string
}

func (v *verified) Read(p []byte) (int, error) {
	n, err := v.checked.Read(p)
	if err == nil {
		return n, nil
	}
	if err != io.EOF { //nolint:errorlint // only the bare EOF is an end
		return n, fmt.Errorf("read %s: %w", v.name, err)
	}
	// The decoder may not have asked for the stored object's very end.
	if _, err := io.Copy(io.Discard, v.stored); err != nil {
		return n, fmt.Errorf("read %s: %w", v.name, err)
	}
	if m := v.manifest; m != nil && (v.sum != m.SnapshotSHA256 || v.stored.sum() != m.StoredSHA256) {
		return n, fmt.Errorf("read %s: %w: %w", v.name, ErrIncomplete, errOther)
	}
	return n, io.EOF
}

// closers closes all, in order.
type closers []io.Closer

func (c closers) Close() error {
	var errs []error
	for _, closer := range c {
		errs = append(errs, closer.Close())
	}
	return errors.Join(errs...)
}

// ParseIdentities reads age identities.
func ParseIdentities(raw []byte) ([]age.Identity, error) {
	ids, err := age.ParseIdentities(bytes.NewReader(raw))
	if err != nil {
		return nil, errors.New("it holds no age identities") // the cause may quote a secret
	}
	return ids, nil
}

// ParseRecipients reads age recipients, one a line.
func ParseRecipients(raw []byte) ([]age.Recipient, error) {
	return age.ParseRecipients(bytes.NewReader(raw))
}
