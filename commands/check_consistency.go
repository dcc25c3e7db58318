package commands

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/etcdkit/etcdkit/commands/app"
	"github.com/etcdkit/etcdkit/health"
	"github.com/etcdkit/etcdkit/internal/output"
)

func newCheckConsistencyCmd(a *app.App) *cobra.Command {
	var opts health.ConsistencyOptions
	cmd := &cobra.Command{
		Use:   "consistency",
		Short: "Compare all members' data at one revision, down to the keys that differ",
		Long: `Compares the members' hashes at one revision and one compact revision. Where they
differ, and do so twice, reads every member's own live keys at that revision, in
pages, and lists the keys that are not the same, with the members that stand
against a majority. Values are told by size and hash only.

Exit codes: 0 all members hold the same; 2 wrong usage; 3 they differ; 4 not all
members could be compared.`,
		Example: "  etcdkit check consistency\n  etcdkit check consistency -w json --max-differences 1000",
		Args:    cobra.NoArgs,
		RunE: a.Run(func(ctx context.Context, _ []string) error {
			opts.Timeout = a.Global.CommandTimeout
			doors, endpoints, err := a.Doors(ctx, nil)
			if err != nil {
				return err
			}
			found, err := health.CheckConsistency(ctx, doors, endpoints, opts)
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			for i := range found.Suspects {
				found.Suspects[i].Next = a.NextStep(found.Suspects[i].Next)
			}
			return errors.Join(a.Print(consistencyView(found)), app.Judged(err))
		}),
	}
	cmd.Flags().IntVar(&opts.MaxDifferences, "max-differences", 100, "keys to list")
	cmd.Flags().BoolVar(&opts.Only, "only-endpoints", false, "compare the endpoints given, not the other members")
	return cmd
}

func consistencyView(c health.Consistency) output.Result {
	return output.Result{
		JSON:   c,
		Simple: func(w io.Writer) { consistencyWords(w, c) },
		Table: func() ([]string, [][]string) {
			var rows [][]string
			for _, m := range c.Members {
				rows = append(rows, []string{m.Member, m.Endpoint, fmt.Sprintf("%08x", m.Hash), fmt.Sprint(m.Revision), fmt.Sprint(m.CompactRevision), m.Error})
			}
			return []string{"member", "endpoint", "hash", "revision", "compact revision", "error"}, rows
		},
	}
}

func consistencyWords(w io.Writer, c health.Consistency) {
	if c.Result == health.HashesSingle {
		fmt.Fprintln(w, "SINGLE MEMBER: nothing to compare")
		return
	}
	fmt.Fprintf(w, "%s at revision %d\n", strings.ToUpper(string(c.Result)), c.Revision)
	if c.Ahead != "" {
		fmt.Fprintln(w, c.Ahead)
	}
	for _, m := range c.Members {
		if m.Error != "" {
			fmt.Fprintf(w, "  %s: %s\n", m.Member, m.Error)
			continue
		}
		compacted := "never compacted"
		if m.CompactRevision > 0 {
			compacted = fmt.Sprintf("compacted at %d", m.CompactRevision)
		}
		fmt.Fprintf(w, "  %s: hash %08x, %s\n", m.Member, m.Hash, compacted)
	}
	for _, g := range c.Gaps {
		fmt.Fprintf(w, "not compared: %s\n", strings.TrimPrefix(g.Member+": "+g.Reason, ": "))
	}
	if c.Result != health.HashesDiffer {
		return
	}
	if len(c.Differences) == 0 {
		fmt.Fprintf(w, "all %d live keys are the same: the difference lies in history or in deleted keys\n", c.Keys)
	}
	for _, d := range c.Differences {
		fmt.Fprintln(w, strconv.Quote(d.Key))
		for _, v := range d.Members {
			if !v.Present {
				fmt.Fprintf(w, "  %s: absent\n", v.Member)
				continue
			}
			fmt.Fprintf(w, "  %s: revision %d, version %d, created at %d, lease %x, %d bytes with hash %s\n", v.Member, v.ModRevision, v.Version, v.CreateRevision, v.Lease, v.ValueBytes, v.ValueSHA256)
		}
	}
	if c.Truncated {
		fmt.Fprintln(w, "and more: --max-differences lists them")
	}
	for _, s := range c.Suspects {
		fmt.Fprintf(w, "%s stands against a majority in %d of %d keys\n  next: %s\n", s.Member, s.Keys, c.Keys, s.Next)
	}
}
