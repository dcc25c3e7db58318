package ctl

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/mirror"

	"github.com/etcdkit/etcdkit/internal/cli"
	"github.com/etcdkit/etcdkit/internal/config"
	"github.com/etcdkit/etcdkit/internal/etcd"
)

type mirrorOptions struct {
	prefix, destPrefix string
	noDestPrefix       bool
	rev                int64
	maxTxnOps          uint
	dest               etcd.Config // but for its endpoint
	native             nativeMirror
}

func newMakeMirrorCmd(t *tree) *cobra.Command {
	var opts mirrorOptions
	cmd := &cobra.Command{
		Use:     "make-mirror [options] <destination>",
		Short:   "Makes a mirror at the destination etcd cluster",
		Long:    t.long("", mirrorHelp),
		GroupID: groupUtility,
	}
	opts.bind(cmd.Flags())
	run := runMakeMirror
	if !t.upstream() {
		opts.native.bind(cmd.Flags())
		run = runNativeMirror
	}
	cmd.RunE = t.run(func(ctx context.Context, args []string) error { return run(ctx, t, args, opts) })
	return t.offer(cmd)
}

func (o *mirrorOptions) bind(fs *pflag.FlagSet) {
	d := &o.dest
	fs.StringVar(&o.prefix, "prefix", "", "Key-value prefix to mirror")
	fs.Int64Var(&o.rev, "rev", 0, "Specify the kv revision to start to mirror")
	fs.UintVar(&o.maxTxnOps, "max-txn-ops", 128, "Maximum number of operations permitted in a transaction during syncing updates.")
	fs.StringVar(&o.destPrefix, "dest-prefix", "", "destination prefix to mirror a prefix to a different prefix in the destination cluster")
	fs.BoolVar(&o.noDestPrefix, "no-dest-prefix", false, "mirror key-values to the root of the destination cluster")
	fs.StringVar(&d.TLS.Cert, "dest-cert", "", "Identify secure client using this TLS certificate file for the destination cluster")
	fs.StringVar(&d.TLS.Key, "dest-key", "", "Identify secure client using this TLS key file")
	fs.StringVar(&d.TLS.CACert, "dest-cacert", "", "Verify certificates of TLS enabled secure servers using this CA bundle")
	fs.BoolVar(&d.TLS.InsecureTransport, "dest-insecure-transport", true, "Disable transport security for client connections")
	fs.StringVar(&d.Auth.User, "dest-user", "", "Destination username[:password] for authentication (prompt if password is not supplied)")
	fs.StringVar(&d.Auth.Password, "dest-password", "", "Destination password for authentication (if this option is used, --user option shouldn't include password)")
}

func runMakeMirror(ctx context.Context, t *tree, args []string, opts mirrorOptions) error {
	if len(args) != 1 {
		return badArgs("make-mirror takes one destination argument")
	}
	dest, err := opts.destination(t, args[0])
	if err != nil {
		return err
	}
	to, err := t.dial(ctx, dest)
	if err != nil {
		return err
	}
	defer to.Close()
	from, err := t.client(ctx)
	if err != nil {
		return err
	}
	defer from.Close()
	if opts.noDestPrefix && opts.destPrefix != "" {
		return badArgs("`--dest-prefix` and `--no-dest-prefix` cannot be set at the same time, choose one")
	}
	m := &upstreamMirror{mirrorOptions: opts, from: from, to: to}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go m.tell(ctx, t)
	return m.run(ctx)
}

// destination returns how to connect to the cluster at endpoint. It shares the
// timeouts with the source, as they are before the environment is read.
func (o *mirrorOptions) destination(t *tree, endpoint string) (etcd.Config, error) {
	c, global := o.dest, t.Global.Conn
	c.Endpoints = []string{endpoint}
	c.DialTimeout, c.KeepAliveTime, c.KeepAliveTimeout = global.DialTimeout, global.KeepAliveTime, global.KeepAliveTimeout
	c.MaxRequestBytes, c.MaxRecvBytes = global.MaxRequestBytes, global.MaxRecvBytes
	c.FailFast = global.FailFast
	c.Log = t.Logger()
	if t.upstream() {
		c.Log = t.upstreamLog().Named("etcd-client")
	}
	var err error
	if c.Resolve, err = etcd.ParseResolve(t.Global.Resolve); err != nil {
		return c, cli.Usage(err)
	}
	c.Auth, err = config.UpstreamAuth(c.Auth, "Destination Password: ", t.Env)
	return c, err
}

// upstreamMirror copies keys as upstream's make-mirror does.
type upstreamMirror struct {
	mirrorOptions
	from, to *clientv3.Client
	total    atomic.Int64
}

// tell writes the number of keys copied every now and then.
func (m *upstreamMirror) tell(ctx context.Context, t *tree) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(30 * time.Second):
			fmt.Fprintln(t.Out, m.total.Load())
		}
	}
}

func (m *upstreamMirror) run(ctx context.Context) error {
	rev := max(m.rev-1, 0)
	s := mirror.NewSyncer(m.from, m.prefix, rev)
	if rev == 0 {
		if err := m.base(ctx, s); err != nil {
			return err
		}
	}
	for resp := range s.SyncUpdates(ctx) {
		if resp.CompactRevision != 0 {
			return rpctypes.ErrCompacted
		}
		if err := m.apply(ctx, resp.Events); err != nil {
			return err
		}
	}
	return errors.New("<nil>") // upstream's word for a watch that ended without a reason
}

// base copies what there is. Only here the destination's prefix defaults to the
// source's.
func (m *upstreamMirror) base(ctx context.Context, s mirror.Syncer) error {
	pages, failed := s.SyncBase(ctx)
	if !m.noDestPrefix && m.destPrefix == "" {
		m.destPrefix = m.prefix
	}
	for page := range pages {
		for _, kv := range page.Kvs {
			if _, err := m.to.Put(ctx, m.rename(kv.Key), string(kv.Value)); err != nil {
				return err
			}
			m.total.Add(1)
		}
	}
	return <-failed
}

// apply makes the changes of one watch response, a transaction for each revision
// and no more than maxTxnOps in one.
func (m *upstreamMirror) apply(ctx context.Context, events []*clientv3.Event) error {
	var (
		ops []clientv3.Op
		rev int64
	)
	flush := func() error {
		if len(ops) == 0 {
			return nil
		}
		_, err := m.to.Txn(ctx).Then(ops...).Commit()
		ops = nil
		return err
	}
	for _, e := range events {
		if e.Kv.ModRevision > rev && rev != 0 || len(ops) == int(m.maxTxnOps) {
			if err := flush(); err != nil {
				return err
			}
		}
		rev = e.Kv.ModRevision
		if e.Type == clientv3.EventTypeDelete {
			ops = append(ops, clientv3.OpDelete(m.rename(e.Kv.Key)))
		} else {
			ops = append(ops, clientv3.OpPut(m.rename(e.Kv.Key), string(e.Kv.Value)))
		}
		m.total.Add(1)
	}
	return flush()
}

func (m *upstreamMirror) rename(key []byte) string {
	return strings.Replace(string(key), m.prefix, m.destPrefix, 1)
}
