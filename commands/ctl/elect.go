package ctl

import (
	"context"
	"errors"

	"github.com/spf13/cobra"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"

	"github.com/etcdkit/etcdkit/internal/output"
)

const electHelp = `Takes part in an election with a proposal, shows it once elected, and leads until a
signal comes. With --listen it only shows who leads, from one leader to the next.

  etcdkit elect master "$HOSTNAME"
  etcdkit elect master --listen

The end of standard input means nothing.

Exit codes: 1 failed, or leadership was lost; 2 wrong usage; 129, 130, 131, 143 ended by a
signal, after resigning.`

func newElectCmd(t *tree) *cobra.Command {
	var listen bool
	cmd := &cobra.Command{
		Use:     "elect <election-name> [proposal]",
		Short:   "Observes and participates in leader election",
		Long:    t.long("", electHelp),
		GroupID: groupConcurrency,
		RunE:    t.run(func(ctx context.Context, args []string) error { return runElect(ctx, t, args, listen) }),
	}
	cmd.Flags().BoolVarP(&listen, "listen", "l", false, "observation mode")
	return t.offer(cmd, output.Fields, output.Protobuf)
}

func runElect(ctx context.Context, t *tree, args []string, listen bool) error {
	if len(args) != 1 && len(args) != 2 {
		return badArgs("elect takes one election name argument and an optional proposal argument")
	}
	var wrong error
	switch {
	case len(args) == 1 && !listen:
		wrong = badArgs("no proposal argument but -l not set")
	case len(args) == 2 && listen:
		wrong = badArgs("proposal given but -l is set")
	}
	if wrong != nil {
		if t.upstream() { // which looks at this only when connected
			if client, err := t.client(ctx); err != nil {
				return err
			} else if err := client.Close(); err != nil {
				return err
			}
		}
		return wrong
	}
	return t.inSession(ctx, func(ctx context.Context, client *clientv3.Client, s *concurrency.Session) error {
		e := concurrency.NewElection(s, args[0])
		if listen {
			return t.observe(ctx, e)
		}
		return t.campaign(ctx, client, s, e, args[1])
	})
}

func (t *tree) observe(ctx context.Context, e *concurrency.Election) error {
	for resp := range e.Observe(ctx) {
		if err := t.print(t.getResult((*pb.RangeResponse)(resp))); err != nil {
			return err
		}
	}
	if ctx.Err() == nil {
		return errors.New("elect: observer lost")
	}
	return t.ended(ctx)
}

func (t *tree) campaign(ctx context.Context, client *clientv3.Client, s *concurrency.Session, e *concurrency.Election, proposal string) error {
	if err := e.Campaign(ctx, proposal); err != nil {
		return t.notGot(ctx, err)
	}
	resp, err := client.Get(ctx, e.Key())
	if err == nil {
		err = t.print(t.getResult((*pb.RangeResponse)(resp)))
	}
	if err != nil {
		return t.releaseAfter(ctx, err, e.Resign)
	}
	select {
	case <-ctx.Done():
		if err := release(ctx, e.Resign); err != nil {
			return err
		}
		return t.ended(ctx)
	case <-s.Done():
		return errors.New("elect: session expired")
	}
}
