package ctl

import (
	"context"
	"errors"
	"io"
	"slices"
	"time"

	"github.com/spf13/pflag"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"google.golang.org/grpc/grpclog"

	"github.com/etcdkit/etcdkit/commands/app"
	"github.com/etcdkit/etcdkit/internal/config"
	"github.com/etcdkit/etcdkit/internal/etcd"
	"github.com/etcdkit/etcdkit/internal/output"
)

// connection returns how to connect. Under upstream's name this is where the
// environment is read, so that a timeout taken before knows only the flag.
func (t *tree) connection() (etcd.Config, error) {
	if !t.upstream() {
		return t.Connection()
	}
	log := t.upstreamLog()
	if err := config.FillUpstream(t.inheritedFlags(), t.Env, log); err != nil {
		return etcd.Config{}, &codeError{exitError, errors.Join(err, errTold)}
	}
	t.setGRPCLog()
	c, err := t.Global.UpstreamConnection(func(flag string) bool { return t.cmd.Flags().Changed(flag) }, t.Env)
	if empty, ok := errors.AsType[*config.EmptyFileError](err); ok {
		return c, &codeError{exitBadArgs, empty}
	}
	if err != nil {
		return c, err
	}
	if !slices.Contains(app.UpstreamFormats(), t.Global.WriteOut) {
		return c, code(exitBadFeature, "unsupported output format")
	}
	t.Format = output.Format(t.Global.WriteOut)
	c.Log = log.Named("etcd-client")
	return c, nil
}

// passwordFirst reads our own password from standard input, if it comes from
// there, before anything else that does.
func (t *tree) passwordFirst() error {
	if t.upstream() || t.Global.PasswordFile != "-" {
		return nil
	}
	_, err := t.Settings()
	return err
}

// inheritedFlags are the flags that variables may set under upstream's name.
// For watch, two variables without a flag are known as well.
func (t *tree) inheritedFlags() *pflag.FlagSet {
	fs := t.cmd.InheritedFlags()
	if t.cmd.Name() != "watch" {
		return fs
	}
	all := pflag.NewFlagSet("watch", pflag.ContinueOnError)
	all.AddFlagSet(fs)
	for _, name := range []string{"watch-key", "watch-range-end"} {
		all.AddFlag(&pflag.Flag{Name: name, Value: ignored{}})
	}
	return all
}

// ignored is the value of a flag that only swallows its variable.
type ignored struct{}

func (ignored) String() string   { return "" }
func (ignored) Set(string) error { return nil }
func (ignored) Type() string     { return "" }

// client connects to all endpoints. The caller closes the client.
func (t *tree) client(ctx context.Context) (*clientv3.Client, error) {
	c, err := t.connection()
	if err != nil {
		return nil, err
	}
	return t.dial(ctx, c)
}

// dial opens a client for c. Work on it ends with ctx.
func (t *tree) dial(ctx context.Context, c etcd.Config) (*clientv3.Client, error) {
	if !t.upstream() {
		return t.Dial(ctx, c)
	}
	cfg, err := c.Client()
	if err != nil {
		return nil, &codeError{exitBadArgs, err}
	}
	cfg.Context = ctx
	client, err := clientv3.New(cfg)
	if err != nil {
		return nil, &codeError{exitBadConnection, err}
	}
	return client, nil
}

// upstreamLog is the log of etcdctl and of the client library in it: one line
// of JSON for each warning, on standard error.
func (t *tree) upstreamLog() *zap.Logger {
	level := zap.InfoLevel
	_ = level.Set(t.Getenv("ETCD_CLIENT_DEBUG")) // what is no level means info
	enc := zapcore.NewJSONEncoder(zapcore.EncoderConfig{
		TimeKey: "ts", LevelKey: "level", NameKey: "logger", CallerKey: "caller", MessageKey: "msg", StacktraceKey: "stacktrace",
		EncodeLevel:    zapcore.LowercaseLevelEncoder,
		EncodeTime:     zapcore.TimeEncoderOfLayout("2006-01-02T15:04:05.000000Z0700"),
		EncodeDuration: zapcore.StringDurationEncoder,
		EncodeCaller:   zapcore.ShortCallerEncoder,
	})
	core := zapcore.NewCore(enc, zapcore.AddSync(t.Err), level)
	return zap.New(zapcore.NewSamplerWithOptions(core, time.Second, 100, 100), zap.AddCaller(), zap.AddStacktrace(zap.ErrorLevel))
}

// setGRPCLog sends grpc's errors to standard error, with --debug everything,
// after the values of all flags.
func (t *tree) setGRPCLog() {
	log := grpclog.NewLoggerV2(io.Discard, io.Discard, t.Err)
	if t.Global.Debug {
		log = grpclog.NewLoggerV2WithVerbosity(t.Err, t.Err, t.Err, 4)
		config.Dump(t.Err, t.inheritedFlags())
	}
	if t.GRPCLog != nil {
		t.GRPCLog(log)
		t.GRPCLog = nil // a second client of this command already uses grpc
	}
}

// nativeTimeout bounds a request that has no deadline under upstream's name.
func (t *tree) nativeTimeout(ctx context.Context) (context.Context, context.CancelFunc) {
	if t.upstream() {
		return context.WithCancel(ctx)
	}
	return t.Timeout(ctx)
}
