package snapshot

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"aead.dev/minisign"

	"github.com/etcdkit/etcdkit/internal/hint"
	"github.com/etcdkit/etcdkit/internal/regular"
	"github.com/etcdkit/etcdkit/internal/store"
)

// signatureSuffix ends the name of a signature, after the whole name of what is
// signed.
const signatureSuffix = ".minisig"

// maxSignature bounds what is read as a signature: two comments and 180 bytes.
const maxSignature = 8 << 10

// ErrUntrusted tells of something that nobody signed whose key is trusted. It is
// an ErrManifest, too: it is no manifest, whatever it says.
var ErrUntrusted error = untrusted{}

type untrusted struct{}

func (untrusted) Error() string        { return "not signed by a trusted key" }
func (untrusted) Is(target error) bool { return target == ErrManifest }

// Signing says who signs what is written, and whose signatures what is read must
// have. The signatures are minisign's: each stands in a file of its own beside
// what it signs, and its trusted comment holds the name of that, so that nothing
// signed counts under another name. The zero value signs nothing and reads
// everything.
type Signing struct {
	Key   *minisign.PrivateKey
	Trust []minisign.PublicKey
}

// Trusting reports whether only what is signed counts.
func (s Signing) Trusting() bool { return len(s.Trust) > 0 }

// TrustsItself reports whether what is signed here is trusted here.
func (s Signing) TrustsItself() bool {
	return !s.Trusting() ||
		s.Key != nil && slices.ContainsFunc(s.Trust, func(key minisign.PublicKey) bool { return key.Equal(s.Key.Public()) })
}

// ParseSigningKey reads a secret key in minisign's format; password is for one
// that has a password. The error holds nothing of either.
func ParseSigningKey(raw []byte, password string) (*minisign.PrivateKey, error) {
	var key minisign.PrivateKey
	if !minisign.IsEncrypted(raw) {
		if err := key.UnmarshalText(raw); err != nil {
			return nil, errors.New("it is no secret key of minisign")
		}
		return &key, nil
	}
	if password == "" {
		return nil, hint.With(errors.New("the key has a password"), "name a file with the password in --sign-password-file, or make a key without one: minisign -G -W")
	}
	key, err := minisign.DecryptKey(password, raw)
	if err != nil {
		return nil, errors.New("the key cannot be decrypted: the password is wrong, or the file is damaged")
	}
	return &key, nil
}

// ParseTrust reads public keys in minisign's format: with the comment line before
// each, or one a line.
func ParseTrust(raw []byte) (keys []minisign.PublicKey, err error) {
	for line := range strings.Lines(string(raw)) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") || strings.HasPrefix(line, "untrusted comment:") {
			continue
		}
		var key minisign.PublicKey
		if err := key.UnmarshalText([]byte(line)); err != nil {
			return nil, errors.New("it is no public key of minisign, which begins with RW")
		}
		keys = append(keys, key)
	}
	if len(keys) == 0 {
		return nil, errors.New("there is no public key in it")
	}
	return keys, nil
}

// signedName is what the trusted comment of a signature says.
func signedName(name string) string { return "file:" + name }

// sign returns the signature of a record that is stored under a name.
func (s Signing) sign(name string, raw []byte) ([]byte, error) {
	message := minisign.NewReader(bytes.NewReader(raw))
	if _, err := io.Copy(io.Discard, message); err != nil {
		return nil, err
	}
	return message.SignWithComments(*s.Key, signedName(name), "signed by etcdkit with "+keyID(s.Key.ID())), nil
}

// keyID names a key as minisign does.
func keyID(id uint64) string { return fmt.Sprintf("key %016X", id) }

// checkRead is check for a signature that was read with an error, or without.
func (s Signing) checkRead(name string, raw, signature []byte, err error) error {
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, store.ErrNotExist):
		return fmt.Errorf("%w: %s has no signature", ErrUntrusted, name)
	case err != nil:
		return fmt.Errorf("read signature: %w", err)
	}
	return s.check(name, raw, signature)
}

// check fails with ErrUntrusted unless one of the trusted keys signed raw under
// that name.
func (s Signing) check(name string, raw, signature []byte) error {
	var parsed minisign.Signature
	if err := parsed.UnmarshalText(signature); err != nil {
		return fmt.Errorf("%w: %s is no signature of minisign", ErrUntrusted, name+signatureSuffix)
	}
	for _, key := range s.Trust {
		if key.ID() != parsed.KeyID {
			continue
		}
		switch {
		case !minisign.Verify(key, raw, signature):
			return fmt.Errorf("%w: %s is not what %s signed", ErrUntrusted, name, keyID(key.ID()))
		case parsed.TrustedComment != signedName(name):
			return fmt.Errorf("%w: %s was signed under another name", ErrUntrusted, name)
		}
		return nil
	}
	return fmt.Errorf("%w: %s is signed by %s", ErrUntrusted, name, keyID(parsed.KeyID))
}

// checkFile is check for a file and the signature beside it.
func (s Signing) checkFile(name string, raw []byte) error {
	if !s.Trusting() {
		return nil
	}
	signature, err := regular.ReadFile(name+signatureSuffix, maxSignature)
	return s.checkRead(filepath.Base(name), raw, signature, err)
}

// Repository returns a repository in which every record that is stored gets its
// signature first, and in which a record counts only with one. Records are all
// JSON documents: manifests, verifications, runs that found nothing changed.
func (s Signing) Repository(repo store.Store) store.Store {
	if s.Key == nil && !s.Trusting() {
		return repo
	}
	return &signed{repo, s}
}

// signed is a repository of records with signatures.
type signed struct {
	store.Store
	Signing
}

// bare returns the store itself, without what is done with signatures.
func bare(repo store.Store) store.Store {
	if s, ok := repo.(*signed); ok {
		return s.Store
	}
	return repo
}

// folderOf returns the folder that a repository is, if it is one.
func folderOf(repo store.Store) (*store.Folder, bool) {
	folder, ok := bare(repo).(*store.Folder)
	return folder, ok
}

// signs reports whether a repository signs its records.
func signs(repo store.Store) bool {
	s, ok := repo.(*signed)
	return ok && s.Key != nil
}

func isRecord(key string) bool { return strings.HasSuffix(key, manifestSuffix) }

// Put stores a record's signature, then the record. A signature alone is no record.
func (s *signed) Put(ctx context.Context, key string, src io.Reader, opts store.PutOptions) (int64, error) {
	if s.Key == nil || !isRecord(key) {
		return s.Store.Put(ctx, key, src, opts)
	}
	raw, err := io.ReadAll(src)
	if err != nil {
		return 0, err
	}
	signature, err := s.sign(path.Base(key), raw)
	if err != nil {
		return 0, err
	}
	if _, err := s.Store.Put(ctx, key+signatureSuffix, bytes.NewReader(signature), store.PutOptions{Size: int64(len(signature))}); err != nil {
		return 0, err
	}
	return s.Store.Put(ctx, key, bytes.NewReader(raw), opts)
}

// Get opens an object. Of a record it is what was signed: both are read whole
// before anything is returned.
func (s *signed) Get(ctx context.Context, key string) (io.ReadCloser, int64, error) {
	if !s.Trusting() || !isRecord(key) {
		return s.Store.Get(ctx, key)
	}
	raw, err := readWhole(ctx, s.Store, key, maxManifest)
	if err != nil {
		return nil, 0, err
	}
	signature, err := readWhole(ctx, s.Store, key+signatureSuffix, maxSignature)
	if err := s.checkRead(path.Base(key), raw, signature, err); err != nil {
		return nil, 0, err
	}
	return io.NopCloser(bytes.NewReader(raw)), int64(len(raw)), nil
}
