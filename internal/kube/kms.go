package kube

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/url"
	"os"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/encoding/protowire"
)

const (
	methodStatus    = "/v2.KeyManagementService/Status"
	methodDecrypt   = "/v2.KeyManagementService/Decrypt"
	methodVersionV1 = "/v1beta1.KeyManagementService/Version"
	methodDecryptV1 = "/v1beta1.KeyManagementService/Decrypt"

	maxKeysKept = 1 << 14 // decrypted keys remembered for one plugin
)

// Plugin is a connection to a key management plugin, which it asks for its
// current key and to decrypt the keys stored with the values; nothing else.
type Plugin struct {
	conn    *grpc.ClientConn
	v1      bool
	timeout time.Duration

	mu   sync.Mutex
	keys map[string][]byte // decrypted, by what is stored
}

// DialPlugin connects to the plugin's socket and asks for its state, so that
// one that does not serve is told at once. It returns the id of the plugin's
// current key; KMS v1 has none.
func DialPlugin(ctx context.Context, cfg KMSConfig) (p *Plugin, keyID string, err error) {
	u, err := url.Parse(cfg.Endpoint)
	if err != nil {
		return nil, "", fmt.Errorf("reach plugin %s: bad endpoint", cfg.Name)
	}
	conn, err := grpc.NewClient("unix://"+u.Path, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithAuthority("localhost"), grpc.WithDefaultCallOptions(grpc.ForceCodec(rawCodec{})))
	if err != nil {
		return nil, "", fmt.Errorf("reach plugin %s: %w", cfg.Name, err)
	}
	p = &Plugin{conn: conn, v1: cfg.APIVersion == "v1", timeout: cfg.Timeout, keys: make(map[string][]byte)}
	method, request, field := methodStatus, []byte(nil), protowire.Number(3)
	if p.v1 {
		method, request, field = methodVersionV1, protowire.AppendString(protowire.AppendTag(nil, 1, protowire.BytesType), "v1beta1"), 0
	}
	reply, err := p.call(ctx, method, request)
	if err != nil {
		_ = conn.Close() // the first error says more
		return nil, "", fmt.Errorf("ask plugin %s for its state: %w", cfg.Name, err)
	}
	id, _ := bytesField(reply, field)
	return p, string(id), nil
}

// Close ends the connection and forgets the keys.
func (p *Plugin) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	clear(p.keys)
	return p.conn.Close()
}

// open decrypts what follows the prefix k8s:enc:kms:VERSION:NAME: in a value.
func (p *Plugin) open(ctx context.Context, etcdKey, sealed []byte) ([]byte, error) {
	if p.v1 {
		dek, data, ok := splitV1(sealed)
		if !ok {
			return nil, ErrOpen
		}
		request := protowire.AppendString(protowire.AppendTag(nil, 1, protowire.BytesType), "v1beta1")
		request = protowire.AppendBytes(protowire.AppendTag(request, 2, protowire.BytesType), dek)
		key, err := p.key(ctx, methodDecryptV1, string(dek), request)
		if err != nil {
			return nil, err
		}
		plain, err := openGCM(key, etcdKey, data)
		if err != nil { // API servers before 1.25 wrote CBC
			return openCBC(key, data)
		}
		return plain, nil
	}
	e, err := parseEnvelope(sealed)
	if err != nil {
		return nil, ErrOpen
	}
	key, err := p.key(ctx, methodDecrypt, e.cacheKey(), e.request())
	if err != nil {
		return nil, err
	}
	if e.seed {
		return openSeeded(key, etcdKey, e.data)
	}
	return openGCM(key, etcdKey, e.data)
}

// cacheKey tells apart what the plugin may decrypt differently.
func (e envelope) cacheKey() string {
	b := protowire.AppendBytes(nil, []byte(e.keyID))
	b = protowire.AppendBytes(b, e.dek)
	for _, a := range e.annotations {
		b = protowire.AppendBytes(b, a)
	}
	return string(b)
}

// request is the DecryptRequest for the key in e.
func (e envelope) request() []byte {
	b := protowire.AppendBytes(protowire.AppendTag(nil, 1, protowire.BytesType), e.dek)
	b = protowire.AppendString(protowire.AppendTag(b, 2, protowire.BytesType), "etcdkit-"+rand.Text())
	b = protowire.AppendString(protowire.AppendTag(b, 3, protowire.BytesType), e.keyID)
	for _, a := range e.annotations {
		b = protowire.AppendBytes(protowire.AppendTag(b, 4, protowire.BytesType), a)
	}
	return b
}

// key returns the decrypted key, asking the plugin once for each stored one.
func (p *Plugin) key(ctx context.Context, method, cacheKey string, request []byte) ([]byte, error) {
	p.mu.Lock()
	key := p.keys[cacheKey]
	p.mu.Unlock()
	if key != nil {
		return key, nil
	}
	reply, err := p.call(ctx, method, request)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrPlugin, err)
	}
	key, ok := bytesField(reply, 1)
	if !ok {
		return nil, ErrOpen
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.keys) >= maxKeysKept {
		clear(p.keys)
	}
	p.keys[cacheKey] = key
	return key, nil
}

// call makes one request. A plugin's error text is not passed on: it may
// quote what it was sent.
func (p *Plugin) call(ctx context.Context, method string, request []byte) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, p.timeout)
	defer cancel()
	var reply []byte
	if err := p.conn.Invoke(ctx, method, &request, &reply); err != nil {
		return nil, fmt.Errorf("plugin answered %s", grpcCode(err))
	}
	return reply, nil
}

// bytesField returns the last field num of a message.
func bytesField(message []byte, num protowire.Number) (content []byte, ok bool) {
	for len(message) > 0 {
		n, typ, tag := protowire.ConsumeTag(message)
		if tag < 0 {
			return nil, false
		}
		size := protowire.ConsumeFieldValue(n, typ, message[tag:])
		if size < 0 {
			return nil, false
		}
		if n == num && typ == protowire.BytesType {
			content, _ = protowire.ConsumeBytes(message[tag:])
			ok = true
		}
		message = message[tag+size:]
	}
	return content, ok
}

// SocketExists reports whether the plugin's socket is on this machine.
func (c KMSConfig) SocketExists() bool {
	u, err := url.Parse(c.Endpoint)
	if err != nil {
		return false
	}
	info, err := os.Stat(u.Path)
	return err == nil && info.Mode().Type() == os.ModeSocket
}
