// Package etcd connects to a cluster: client configuration, dialing, telling
// why a connection fails, and reads that stay within bounded memory.
package etcd

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"

	"github.com/etcdkit/etcdkit/internal/hint"
)

// readAhead is how much a server may send before it was read. A few messages of
// a stream fit, so that the server prepares the next ones meanwhile.
const readAhead = 8 << 20

// defaultSendLimit is the client library's bound of a request.
const defaultSendLimit = 2 << 20

// Config is how to reach a cluster.
type Config struct {
	Endpoints []string
	Resolve   Resolve // where else to connect for some addresses

	DialTimeout      time.Duration
	KeepAliveTime    time.Duration
	KeepAliveTimeout time.Duration
	MaxRequestBytes  int // 0 means the client's default, 2 MiB
	MaxRecvBytes     int // 0 means the client's default, 2 GiB

	TLS  TLS
	Auth Auth

	// FailFast ends a request within a second once no endpoint can be
	// connected to, instead of retrying until its deadline.
	FailFast bool
	Log      *zap.Logger // nil means none
}

// TLS names the files and choices of a TLS connection.
type TLS struct {
	CACert, Cert, Key  string // files
	ServerName         string // "" means the endpoint's host
	InsecureTransport  bool   // plain text, unless a certificate or an https endpoint is given
	InsecureSkipVerify bool
}

// Auth identifies a user, by password or by token.
type Auth struct {
	User, Password string
	Token          string
}

// At returns the configuration for these endpoints alone.
func (c Config) At(endpoints ...string) Config {
	c.Endpoints = slices.Clone(endpoints)
	return c
}

// Client returns the client library's configuration.
func (c Config) Client() (clientv3.Config, error) {
	log := c.Log
	if log == nil {
		log = zap.NewNop()
	}
	spec := &clientv3.ConfigSpec{
		Endpoints:          c.Endpoints,
		DialTimeout:        c.DialTimeout,
		KeepAliveTime:      c.KeepAliveTime,
		KeepAliveTimeout:   c.KeepAliveTimeout,
		MaxCallSendMsgSize: c.MaxRequestBytes,
		MaxCallRecvMsgSize: c.MaxRecvBytes,
		Secure: &clientv3.SecureConfig{
			Cacert: c.TLS.CACert, Cert: c.TLS.Cert, Key: c.TLS.Key, ServerName: c.TLS.ServerName,
			InsecureTransport: c.TLS.InsecureTransport, InsecureSkipVerify: c.TLS.InsecureSkipVerify,
		},
	}
	if c.Auth != (Auth{}) {
		spec.Auth = &clientv3.AuthConfig{Username: c.Auth.User, Password: c.Auth.Password, Token: c.Auth.Token}
	}
	cfg, err := clientv3.NewClientConfig(spec, log)
	if err != nil {
		return clientv3.Config{}, err
	}
	cfg.Logger = log
	cfg.DialOptions = append(cfg.DialOptions, grpc.WithInitialWindowSize(readAhead), grpc.WithInitialConnWindowSize(readAhead),
		grpc.WithDefaultCallOptions(c.messageLimits()...))
	if len(c.Resolve) > 0 {
		cfg.DialOptions = append(cfg.DialOptions, grpc.WithContextDialer(c.dialTarget))
	}
	if c.FailFast {
		f := &failFast{patience: giveUpAfter}
		cfg.DialOptions = append(cfg.DialOptions, grpc.WithChainUnaryInterceptor(f.unary), grpc.WithChainStreamInterceptor(f.stream))
	}
	return *cfg, nil
}

// messageLimits bounds the messages of calls that do not go through the client
// library, which bounds only its own. Both read the same settings.
func (c Config) messageLimits() []grpc.CallOption {
	recv := math.MaxInt32
	if c.MaxRecvBytes > 0 {
		recv = c.MaxRecvBytes
	}
	return []grpc.CallOption{grpc.MaxCallSendMsgSize(c.sendLimit()), grpc.MaxCallRecvMsgSize(recv)}
}

func (c Config) sendLimit() int {
	if c.MaxRequestBytes > 0 {
		return c.MaxRequestBytes
	}
	return defaultSendLimit
}

// Dial opens a client. Work on it ends with ctx. A user's password is checked
// here, so Dial may talk to the cluster for as long as the dial timeout.
func Dial(ctx context.Context, c Config) (*clientv3.Client, error) {
	if len(c.Endpoints) == 0 {
		return nil, hint.With(errors.New("connect: no endpoint given"), "set --endpoints")
	}
	cfg, err := c.Client()
	if err != nil {
		return nil, fmt.Errorf("connect: %w", c.explainFiles(err))
	}
	cfg.Context = ctx
	client, err := clientv3.New(cfg)
	if err != nil {
		return nil, fmt.Errorf("connect: %w", Diagnose(ctx, c, err))
	}
	return client, nil
}
