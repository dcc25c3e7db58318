package sample

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"encoding/base64"
	"fmt"
	"math/rand/v2"

	"golang.org/x/crypto/nacl/secretbox"
)

// Key encrypts values as kube-apiserver does. Its secrets protect nothing.
type Key struct {
	Provider string // aescbc, aesgcm or secretbox
	Name     string
	Secret   [32]byte
}

// Keys returns the keys that Objects encrypts with.
func Keys(seed uint64) []Key {
	r := rand.New(rand.NewPCG(seed, 1))
	keys := []Key{{Provider: "aescbc", Name: "key1"}, {Provider: "aesgcm", Name: "gcm-prod"}, {Provider: "secretbox", Name: "sb-2026"}}
	for i := range keys {
		fill(r, keys[i].Secret[:])
	}
	return keys
}

// EncryptionConfig returns the configuration under which kube-apiserver would
// read what the keys encrypted.
func EncryptionConfig(keys []Key) []byte {
	var b bytes.Buffer
	b.WriteString("apiVersion: apiserver.config.k8s.io/v1\nkind: EncryptionConfiguration\nresources:\n- resources: [secrets]\n  providers:\n")
	for _, k := range keys {
		fmt.Fprintf(&b, "  - %s: {keys: [{name: %s, secret: %s}]}\n", k.Provider, k.Name, base64.StdEncoding.EncodeToString(k.Secret[:]))
	}
	b.WriteString("  - identity: {}\n")
	return b.Bytes()
}

// Seal returns value as it is stored under etcdKey when it is encrypted with k.
func (k Key) Seal(etcdKey, value []byte, r *rand.Rand) ([]byte, error) {
	sealed := fmt.Appendf(nil, "k8s:enc:%s:v1:%s:", k.Provider, k.Name)
	block, err := aes.NewCipher(k.Secret[:])
	if err != nil {
		return nil, fmt.Errorf("seal: %w", err)
	}
	switch k.Provider {
	case "aescbc":
		return append(sealed, sealCBC(block, value, r)...), nil
	case "aesgcm":
		gcm, err := cipher.NewGCM(block)
		if err != nil {
			return nil, fmt.Errorf("seal: %w", err)
		}
		nonce := make([]byte, gcm.NonceSize())
		fill(r, nonce)
		sealed = append(sealed, nonce...)
		return gcm.Seal(sealed, nonce, value, etcdKey), nil
	case "secretbox":
		var nonce [24]byte
		fill(r, nonce[:])
		return secretbox.Seal(append(sealed, nonce[:]...), value, &nonce, &k.Secret), nil
	}
	return nil, fmt.Errorf("seal: unknown provider %s", k.Provider)
}

// sealCBC pads as PKCS #7 says.
func sealCBC(block cipher.Block, value []byte, r *rand.Rand) []byte {
	size := block.BlockSize()
	pad := size - len(value)%size
	out := make([]byte, size+len(value)+pad)
	fill(r, out[:size])
	copy(out[size:], value)
	copy(out[size+len(value):], bytes.Repeat([]byte{byte(pad)}, pad))
	cipher.NewCBCEncrypter(block, out[:size]).CryptBlocks(out[size:], out[size:])
	return out
}

func fill(r *rand.Rand, b []byte) {
	for i := range b {
		b[i] = byte(r.Uint32())
	}
}
