package commands

import (
	"errors"
	"fmt"
	"strings"

	"aead.dev/minisign"

	"github.com/etcdkit/etcdkit/commands/app"
	"github.com/etcdkit/etcdkit/internal/cli"
	"github.com/etcdkit/etcdkit/internal/config"
	"github.com/etcdkit/etcdkit/internal/hint"
	"github.com/etcdkit/etcdkit/snapshot"
)

// signFlags name the keys that sign what is stored and that must have signed
// what is read.
type signFlags struct {
	trust        []string
	signWith     string
	signPassword string

	key *minisign.PrivateKey // of signWith, once it is read: decrypting it takes long
}

// bindTrust defines whose signatures count.
func (f *repoFlags) bindTrust() {
	f.set.StringSliceVar(&f.trust, "trust", nil, "minisign public key, or a file of them: only backups that one of them signed count; may be repeated")
	config.Env(f.set, "trust")
}

// bindSigning defines who signs what is stored.
func (f *repoFlags) bindSigning() {
	f.set.StringVar(&f.signWith, "sign-with", "", "file with a minisign secret key that signs what is stored")
	f.set.StringVar(&f.signPassword, "sign-password-file", "", "file with the password of the key of --sign-with")
	config.Env(f.set, "sign-with")
	config.Env(f.set, "sign-password-file")
}

// signing reads the keys. It refuses to sign with a key that the next command
// would not trust.
func (f *signFlags) signing(a *app.App) (s snapshot.Signing, err error) {
	if s.Trust, err = f.trusted(a); err != nil {
		return s, err
	}
	if s.Key, err = f.signingKey(a); err != nil {
		return s, err
	}
	if s.Key != nil && !s.TrustsItself() {
		return s, cli.Usage(hint.With(errors.New("--trust does not name the key of --sign-with, so what is stored would not be trusted"),
			"add its public key to --trust"))
	}
	return s, nil
}

// trusted reads the public keys of --trust.
func (f *signFlags) trusted(a *app.App) (all []minisign.PublicKey, err error) {
	for _, value := range f.trust {
		raw := []byte(value)
		if !isPublicKey(value) {
			if raw, err = a.ReadFile(value, cli.MaxSecretFile); err != nil {
				return nil, cli.Usage(hint.With(fmt.Errorf("--trust: %w", err), "a public key begins with RW, anything else is a file of them"))
			}
		}
		keys, err := snapshot.ParseTrust(raw)
		if err != nil {
			return nil, cli.Usage(fmt.Errorf("--trust %s: %w", value, err))
		}
		all = append(all, keys...)
	}
	return all, nil
}

// signingKey reads the secret key of --sign-with, nil if there is none.
func (f *signFlags) signingKey(a *app.App) (*minisign.PrivateKey, error) {
	switch {
	case f.key != nil:
		return f.key, nil
	case f.signWith == "" && f.signPassword != "":
		return nil, cli.Usagef("--sign-password-file is for --sign-with, which is not given")
	case f.signWith == "":
		return nil, nil
	}
	raw, err := a.ReadFile(f.signWith, cli.MaxSecretFile)
	if err != nil {
		return nil, cli.Usage(fmt.Errorf("--sign-with: %w", err))
	}
	password := []byte{}
	if f.signPassword != "" {
		if password, err = a.ReadFile(f.signPassword, cli.MaxSecretFile); err != nil {
			return nil, cli.Usage(fmt.Errorf("--sign-password-file: %w", err))
		}
	}
	if f.key, err = snapshot.ParseSigningKey(raw, strings.TrimRight(string(password), "\r\n")); err != nil {
		return nil, cli.Usage(fmt.Errorf("--sign-with %s: %w", f.signWith, err))
	}
	return f.key, nil
}

// isPublicKey reports whether a value is a public key of minisign, not the name
// of a file.
func isPublicKey(value string) bool {
	return len(value) == publicKeyLength && strings.HasPrefix(value, "RW")
}

// publicKeyLength is the length of a minisign public key in base64: 42 bytes.
const publicKeyLength = 56
