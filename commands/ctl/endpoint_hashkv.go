package ctl

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/etcdkit/etcdkit/health"
	"github.com/etcdkit/etcdkit/internal/cli"
	"github.com/etcdkit/etcdkit/internal/etcd"
	"github.com/etcdkit/etcdkit/internal/hint"
	"github.com/etcdkit/etcdkit/internal/output"
)

// endpointHash is one endpoint's answer, in upstream's JSON.
type endpointHash struct {
	Endpoint string             `json:"Endpoint"`
	Hash     *pb.HashKVResponse `json:"HashKV,omitempty"`
	Error    string             `json:"error,omitempty"`
}

func newEndpointHashKVCmd(t *tree, cluster *bool) *cobra.Command {
	var revision int64
	cmd := &cobra.Command{
		Use: "hashkv", Short: "Prints the KV history hash for each endpoint in --endpoints",
		Long: t.long("", `Shows a hash over the keys and their history of each endpoint. Hashes can be
compared when hash revision and compact revision are the same; --cluster does
that for all members and judges.

  etcdkit endpoint hashkv --cluster

Exit codes: 0 shown, with --cluster the members agree; 1 an endpoint did not
answer; 2 wrong usage; with --cluster 3 members differ, 4 not all of them could
be compared.`),
		RunE: t.run(func(ctx context.Context, args []string) error {
			return runEndpointHashKV(ctx, t, args, cluster, revision)
		}),
	}
	cmd.PersistentFlags().Int64Var(&revision, "rev", 0, "maximum revision to hash (default: latest revision)")
	return t.offer(cmd, output.Table, output.Fields)
}

func runEndpointHashKV(ctx context.Context, t *tree, args []string, cluster *bool, revision int64) error {
	c, targets, err := t.looking(ctx, args, cluster)
	judging := *cluster && !t.upstream()
	if err != nil && judging && ctx.Err() == nil && !errors.Is(err, cli.ErrUsage) && !errors.Is(err, cli.ErrGuard) {
		return cli.CannotTell(err)
	}
	if err != nil {
		return err
	}
	if judging {
		return t.compareHashes(ctx, c, targets, revision)
	}
	all := make([]endpointHash, len(targets))
	errs, err := t.visit(ctx, c, targets, func(ctx context.Context, i int, client *clientv3.Client) error {
		resp, err := client.HashKV(ctx, targets[i], revision)
		all[i] = endpointHash{Endpoint: targets[i], Hash: (*pb.HashKVResponse)(resp)}
		return err
	})
	if err != nil {
		return err
	}
	all = answered(t, all, errs, func(i int, h *endpointHash) {
		h.Endpoint, h.Error = targets[i], errs[i].Error()
		if t.upstream() {
			fmt.Fprintf(t.Err, "Failed to get the hash of endpoint %s (%v)\n", targets[i], errs[i])
		}
	})
	if err := t.print(t.hashResult(all)); err != nil {
		return err
	}
	return t.failed(targets, errs)
}

// compareHashes hashes every member at one revision and judges.
func (t *tree) compareHashes(ctx context.Context, c etcd.Config, targets []string, revision int64) error {
	sources := make([]health.HashSource, len(targets))
	responses := make([]*pb.HashKVResponse, len(targets))
	who := health.NewAnswers()
	for i, ep := range targets {
		sources[i] = health.HashSource{
			Member: ep, Endpoint: ep,
			State: func(ctx context.Context) (state health.HashState, err error) {
				err = t.visitOne(ctx, c.At(ep), func(ctx context.Context, client *clientv3.Client) error {
					resp, err := client.Status(ctx, ep)
					if err != nil {
						return err
					}
					state = health.HashStateOf(resp)
					return who.Note(ep, resp.Header)
				})
				if revision != 0 {
					state.Revision = revision // no newer one is asked about
				}
				return state, err
			},
			Hash: func(ctx context.Context, at int64) (h health.MemberHash, err error) {
				err = t.visitOne(ctx, c.At(ep), func(ctx context.Context, client *clientv3.Client) error {
					resp, err := client.HashKV(ctx, ep, at)
					if err != nil {
						return err
					}
					if err := t.rightMember(ep, resp.Header); err != nil {
						return err
					}
					responses[i] = (*pb.HashKVResponse)(resp)
					h.Hash, h.CompactRevision = resp.Hash, resp.CompactRevision
					return who.Note(ep, resp.Header)
				})
				return h, err
			},
		}
	}
	hashes := health.CompareHashes(ctx, sources)
	if err := who.OneCluster(); err != nil {
		return cli.Usage(err)
	}
	if err := context.Cause(ctx); err != nil {
		return err
	}
	all := make([]endpointHash, len(targets))
	for i, h := range hashes.Members {
		all[i] = endpointHash{Endpoint: h.Endpoint, Error: h.Error}
		if h.Error == "" {
			all[i].Hash = responses[i]
		}
	}
	if err := t.print(t.hashResult(all)); err != nil {
		return err
	}
	return t.judgeHashes(hashes)
}

// judgeHashes says whether the members agree. A learner refuses to hash, and is
// no voter whose answer counts.
func (t *tree) judgeHashes(h health.Hashes) error {
	missing, compared := "", 0
	if t.unvisited > 0 {
		missing = output.Count(t.unvisited, "member") + " with the client URL of another"
	}
	for _, m := range h.Members {
		switch {
		case m.Error == "":
			compared++
		case !strings.Contains(m.Error, rpctypes.ErrorDesc(rpctypes.ErrGRPCNotSupportedForLearner)):
			missing = cmp.Or(missing, strings.TrimPrefix(m.Error, m.Endpoint+": ")+" at "+m.Endpoint)
		}
	}
	switch {
	case h.Result == health.HashesEqual && missing == "":
		t.Note("%s agree at revision %d", output.Count(compared, "member"), h.Revision)
		return nil
	case h.Result == health.HashesEqual:
		return cli.CannotTell(hint.With(fmt.Errorf("%s agree at revision %d, but not all could be compared: %s", output.Count(compared, "member"), h.Revision, missing),
			"see what is wrong with the others with: etcdkit health"))
	case h.Result == health.HashesDiffer && h.Ahead != "":
		return cli.Verdict(hint.With(fmt.Errorf("members differ: %s", h.Ahead), `"etcdkit check consistency" compares again`))
	case h.Result == health.HashesDiffer:
		return cli.Verdict(hint.With(fmt.Errorf("members differ at revision %d", h.Revision), `"etcdkit check consistency" finds the keys that differ`))
	case len(h.Members) == 1 && missing == "":
		return nil
	}
	return cli.CannotTell(hint.With(errors.New("no two members hashed one revision with one compact revision"), "see the errors above, or try again when no compaction runs"))
}

func (t *tree) hashResult(all []endpointHash) result {
	table := func() ([]string, [][]string) {
		var rows [][]string
		for _, h := range all {
			hash := fmt.Sprint(h.Hash.GetHash())
			if h.Error != "" {
				hash = h.Error
			}
			rows = append(rows, []string{h.Endpoint, hash, fmt.Sprint(h.Hash.GetHashRevision())})
		}
		return []string{"endpoint", "hash", "hash_revision"}, rows
	}
	v := t.kvView()
	return result{
		json: all, table: table,
		simple: func(w io.Writer) {
			_, rows := table()
			for _, row := range rows {
				fmt.Fprintln(w, strings.Join(row, ", "))
			}
		},
		fields: func(w io.Writer) {
			for _, h := range all {
				if h.Error != "" {
					fmt.Fprintf(w, "\"Endpoint\" : %q\n\"Error\" : %q\n\n", h.Endpoint, h.Error)
					continue
				}
				v.header(w, h.Hash.GetHeader())
				fmt.Fprintf(w, "\"Endpoint\" : %q\n", h.Endpoint)
				fmt.Fprintln(w, `"Hash" :`, h.Hash.GetHash())
				fmt.Fprintln(w, `"HashRevision" :`, h.Hash.GetHashRevision())
				fmt.Fprintln(w)
			}
		},
	}
}
