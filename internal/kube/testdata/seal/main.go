// Seal writes values encrypted by the transformers of Kubernetes' API server,
// as vectors for the tests of package kube:
//
//	go run . >../sealed.json
//
// The key management plugin is pretended: it "encrypts" by base64, as the
// plugin in the tests decrypts.
package main

import (
	"context"
	"crypto/cipher"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/server/options/encryptionconfig"
	"k8s.io/apiserver/pkg/storage/value"
	aestransformer "k8s.io/apiserver/pkg/storage/value/encrypt/aes"
	"k8s.io/apiserver/pkg/storage/value/encrypt/envelope"
	"k8s.io/apiserver/pkg/storage/value/encrypt/envelope/kmsv2"
	kmsservice "k8s.io/kms/pkg/service"
)

// vector is one stored value.
type vector struct {
	EtcdKey string `json:"etcdKey"`
	Value   []byte `json:"value"`
}

const plain = "k8s\x00\n\x0c\n\x02v1\x12\x06Secret\x12\x10HIDDEN-MARKER-01"

func main() {
	vectors, err := seal(context.Background())
	if err == nil {
		enc := json.NewEncoder(os.Stdout)
		enc.SetIndent("", "  ")
		err = enc.Encode(vectors)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "seal:", err)
		os.Exit(1)
	}
}

func seal(ctx context.Context) (map[string]vector, error) {
	config, err := encryptionconfig.LoadEncryptionConfig(ctx, "config.yaml", false, "test")
	if err != nil {
		return nil, err
	}
	vectors := make(map[string]vector)
	for name, s := range map[string]struct {
		etcdKey, prefix string
		with            value.Transformer
	}{
		"aescbc":    {"/registry/secrets/ns/cbc", "", config.Transformers[schema.GroupResource{Resource: "secrets"}]},
		"aesgcm":    {"/registry/configmaps/ns/gcm", "", config.Transformers[schema.GroupResource{Resource: "configmaps"}]},
		"secretbox": {"/registry/deployments/ns/box", "", config.Transformers[schema.GroupResource{Group: "apps", Resource: "deployments"}]},
		"kms v1":    {"/registry/secrets/ns/kms1", "k8s:enc:kms:v1:vault:", envelope.NewEnvelopeTransformer(base64V1{}, 10, gcmOf)},
		"kms v1 as before 1.25": {"/registry/secrets/ns/kms1cbc", "k8s:enc:kms:v1:vault:",
			envelope.NewEnvelopeTransformer(base64V1{}, 10, func(b cipher.Block) (value.Transformer, error) { return aestransformer.NewCBCTransformer(b), nil })},
		"kms v2 with a seed": {"/registry/secrets/ns/kms2", "k8s:enc:kms:v2:vault:", v2(ctx, true)},
		"kms v2 with a key":  {"/registry/secrets/ns/kms2key", "k8s:enc:kms:v2:vault:", v2(ctx, false)},
	} {
		sealed, err := s.with.TransformToStorage(ctx, []byte(plain), value.DefaultContext(s.etcdKey))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		vectors[name] = vector{EtcdKey: s.etcdKey, Value: append([]byte(s.prefix), sealed...)}
	}
	return vectors, nil
}

func gcmOf(b cipher.Block) (value.Transformer, error) { return aestransformer.NewGCMTransformer(b) }

// v2 seals as KMS v2 does, with a data key for each object that is derived
// from a seed, or with one key for all.
func v2(ctx context.Context, seed bool) value.Transformer {
	return kmsv2.NewEnvelopeTransformer(base64V2{}, "vault", func() (kmsv2.State, error) {
		t, object, cacheKey, err := kmsv2.GenerateTransformer(ctx, "uid", base64V2{}, seed)
		if err != nil {
			return kmsv2.State{}, err
		}
		return kmsv2.State{
			Transformer: t, EncryptedObjectKeyID: object.KeyID, EncryptedObjectEncryptedDEKSource: object.EncryptedDEKSource,
			EncryptedObjectAnnotations: object.Annotations, EncryptedObjectEncryptedDEKSourceType: object.EncryptedDEKSourceType,
			UID: "uid", ExpirationTimestamp: time.Now().Add(time.Hour), CacheKey: cacheKey, KMSProviderName: "vault",
		}, nil
	}, "test")
}

type base64V1 struct{}

func (base64V1) Encrypt(b []byte) ([]byte, error) {
	return []byte(base64.StdEncoding.EncodeToString(b)), nil
}
func (base64V1) Decrypt(b []byte) ([]byte, error) { return base64.StdEncoding.DecodeString(string(b)) }

type base64V2 struct{}

func (base64V2) Encrypt(_ context.Context, _ string, b []byte) (*kmsservice.EncryptResponse, error) {
	return &kmsservice.EncryptResponse{Ciphertext: []byte(base64.StdEncoding.EncodeToString(b)), KeyID: "key-2026",
		Annotations: map[string][]byte{"version.example.com": []byte("7")}}, nil
}

func (base64V2) Decrypt(_ context.Context, _ string, r *kmsservice.DecryptRequest) ([]byte, error) {
	return base64.StdEncoding.DecodeString(string(r.Ciphertext))
}

func (base64V2) Status(context.Context) (*kmsservice.StatusResponse, error) {
	return &kmsservice.StatusResponse{Version: "v2", Healthz: "ok", KeyID: "key-2026"}, nil
}
