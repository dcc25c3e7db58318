package kube

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"

	"golang.org/x/crypto/nacl/secretbox"
)

var (
	// ErrNoKey says that the configuration has no key for a stored value.
	ErrNoKey = errors.New("no key for it in the configuration")
	// ErrPlugin says that the key management plugin gave no answer, so that
	// nothing is known about the value.
	ErrPlugin = errors.New("the key management plugin gave no answer")
	// ErrOpen says that the key does not open the value.
	ErrOpen = errors.New("the key does not open it")

	errEnvelope = errors.New("not an envelope of KMS v2")
)

const (
	gcmNonce    = 12
	hkdfInfo    = 32 // bytes in front of data whose key is derived from a seed
	derivedSize = 32
)

// Opener opens stored values with the keys of an EncryptionConfiguration.
type Opener struct {
	config  *EncryptionConfig
	plugins map[string]*Plugin // by provider name
}

// NewOpener returns an Opener. plugins are the key management plugins that
// could be reached, by provider name; values of others end in [ErrPlugin].
func NewOpener(config *EncryptionConfig, plugins map[string]*Plugin) *Opener {
	return &Opener{config: config, plugins: plugins}
}

// Open returns the object in value, which is stored under the given etcd key:
// the authenticated formats bind a value to its key. Errors name no content.
func (o *Opener) Open(ctx context.Context, key Key, etcdKey, value []byte) ([]byte, error) {
	s := o.config.Classify(value, true)
	if s.Format.Plain() {
		return value, nil
	}
	if s.Format != Encrypted {
		return nil, fmt.Errorf("open value: unknown format: %w", ErrOpen)
	}
	_, sealed := o.config.split(value, true)
	providers, _ := o.config.Providers(GroupResource{Group: key.Group, Resource: key.Resource})
	known := false
	for _, p := range providers {
		if p.Name() != s.Provider {
			continue
		}
		known = true
		plain, err := o.openWith(ctx, p, s, etcdKey, sealed)
		if !errors.Is(err, ErrNoKey) {
			return plain, err
		}
	}
	if known {
		return nil, fmt.Errorf("open value of %s with key %s: %w", s.Provider, shown(s.Key), ErrNoKey)
	}
	return nil, fmt.Errorf("open value of %s: %w", s.Provider, ErrNoKey)
}

func (o *Opener) openWith(ctx context.Context, p Provider, s Storage, etcdKey, sealed []byte) ([]byte, error) {
	if p.KMS != nil {
		plugin := o.plugins[p.Name()]
		if plugin == nil {
			return nil, fmt.Errorf("open value of %s: %w", s.Provider, ErrPlugin)
		}
		return plugin.open(ctx, etcdKey, sealed)
	}
	for _, k := range p.Keys {
		if k.Name != s.Key {
			continue
		}
		switch p.Kind {
		case AESCBC:
			return openCBC(k.secret(), sealed)
		case AESGCM:
			return openGCM(k.secret(), etcdKey, sealed)
		case Secretbox:
			return openSecretbox(k.secret(), sealed)
		}
	}
	return nil, ErrNoKey
}

// openCBC decrypts AES-CBC with PKCS #7 padding; the first block is the vector.
// The format has no authentication, so that what comes out must look like an
// object before it counts as opened.
func openCBC(key, sealed []byte) ([]byte, error) {
	block, err := aes.NewCipher(key)
	if err != nil || len(sealed) < 2*aes.BlockSize || len(sealed)%aes.BlockSize != 0 {
		return nil, ErrOpen
	}
	plain := make([]byte, len(sealed)-aes.BlockSize)
	cipher.NewCBCDecrypter(block, sealed[:aes.BlockSize]).CryptBlocks(plain, sealed[aes.BlockSize:])
	pad := int(plain[len(plain)-1])
	if pad == 0 || pad > aes.BlockSize {
		return nil, ErrOpen
	}
	for _, b := range plain[len(plain)-pad:] {
		if int(b) != pad {
			return nil, ErrOpen
		}
	}
	plain = plain[:len(plain)-pad]
	if !Classify(plain).Format.Plain() {
		return nil, ErrOpen
	}
	return plain, nil
}

func openGCM(key, etcdKey, sealed []byte) ([]byte, error) {
	block, err := aes.NewCipher(key)
	if err != nil || len(sealed) < gcmNonce {
		return nil, ErrOpen
	}
	aead, err := cipher.NewGCM(block)
	if err != nil {
		return nil, ErrOpen
	}
	plain, err := aead.Open(nil, sealed[:gcmNonce], sealed[gcmNonce:], etcdKey)
	if err != nil {
		return nil, ErrOpen
	}
	return plain, nil
}

func openSecretbox(key, sealed []byte) ([]byte, error) {
	const nonceSize = 24
	if len(key) != 32 || len(sealed) < nonceSize {
		return nil, ErrOpen
	}
	plain, ok := secretbox.Open(nil, sealed[nonceSize:], (*[nonceSize]byte)(sealed), (*[32]byte)(key))
	if !ok {
		return nil, ErrOpen
	}
	return plain, nil
}

// openSeeded opens data of KMS v2 whose key is derived from seed and the
// bytes in front of it.
func openSeeded(seed, etcdKey, data []byte) ([]byte, error) {
	if len(data) < hkdfInfo {
		return nil, ErrOpen
	}
	key, err := hkdf.Expand(sha256.New, seed, string(data[:hkdfInfo]), derivedSize)
	if err != nil {
		return nil, ErrOpen
	}
	return openGCM(key, etcdKey, data[hkdfInfo:])
}

// splitV1 cuts a value of KMS v1 into the encrypted key and the data.
func splitV1(sealed []byte) (dek, data []byte, ok bool) {
	if len(sealed) < 2 {
		return nil, nil, false
	}
	n := int(binary.BigEndian.Uint16(sealed))
	if n == 0 || len(sealed) < 2+n {
		return nil, nil, false
	}
	return sealed[2 : 2+n], sealed[2+n:], true
}
