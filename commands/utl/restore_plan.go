package utl

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"github.com/etcdkit/etcdkit/internal/cli"
	"github.com/etcdkit/etcdkit/internal/output"
	"github.com/etcdkit/etcdkit/snapshot"
)

// showPlan shows the commands that restore every member, all with the same
// numbers.
func showPlan(ctx context.Context, t *tree, o restoreOptions, opts snapshot.RestoreOptions, src *restoreSource) error {
	facts, err := snapshot.PlanFacts(ctx, src.RestoreSource, opts)
	if err != nil {
		return err
	}
	var plan []planStep
	for _, m := range snapshot.PlanMembers(opts) {
		plan = append(plan, planStep{Member: m.Name, Restore: restoreLine(o, opts, facts, m, src.pinned), Start: startLine(opts, m)})
	}
	return t.print(output.Result{
		JSON: map[string]any{"plan": plan},
		Simple: func(w io.Writer) {
			for _, s := range plan {
				fmt.Fprintf(w, "# on %s\n%s\n%s\n\n", s.Member, s.Restore, s.Start)
			}
		},
	})
}

// planStep is what to do for one member.
type planStep struct {
	Member  string `json:"member"`
	Restore string `json:"restore"`
	Start   string `json:"start"`
}

func restoreLine(o restoreOptions, opts snapshot.RestoreOptions, f snapshot.Facts, m snapshot.PlannedMember, source string) string {
	args := []string{
		"etcdkit", "snapshot", "restore", source, "--data-dir", dirOf(opts.DataDir, opts.Name, m.Name), "--name", m.Name,
		"--initial-cluster", opts.InitialCluster, "--initial-advertise-peer-urls", strings.Join(m.PeerURLs, ","),
		"--initial-cluster-token", f.Token,
	}
	switch {
	case f.Bump.Auto:
		args = append(args, "--bump-revision", "auto")
	case f.Bump.By > 0:
		args = append(args, "--bump-revision", strconv.FormatUint(f.Bump.By, 10), "--mark-compacted")
	default:
		args = append(args, "--bump-revision", "none")
	}
	if o.walDir != "" {
		args = append(args, "--wal-dir", dirOf(o.walDir, opts.Name, m.Name))
	}
	if o.sourceWALDir != "" {
		args = append(args, "--source-wal-dir", o.sourceWALDir)
	}
	if o.owner != "" {
		args = append(args, "--owner", o.owner)
	}
	if o.skipHash {
		args = append(args, "--skip-hash-check")
	}
	if o.moveAside {
		args = append(args, "--move-aside")
	}
	args = append(args, o.access...)
	return cli.ShellLine(args...)
}

// accessFlags returns the flags given that say how to open SOURCE, for whoever
// runs the plan. A proxy's password stays here.
func accessFlags(fs *pflag.FlagSet) (args []string) {
	fs.Visit(func(f *pflag.Flag) {
		if f.Name != "identity" && f.Name != "trust" && f.Name != "config" && f.Name != "timeout" && !strings.HasPrefix(f.Name, "s3-") {
			return
		}
		values := []string{f.Value.String()}
		if list, ok := f.Value.(pflag.SliceValue); ok {
			values = list.GetSlice()
		}
		for _, v := range values {
			if f.Name != "s3-proxy" || !strings.Contains(v, "@") {
				args = append(args, "--"+f.Name+"="+v)
			}
		}
	})
	return args
}

// startLine starts a member. Without its WAL directory etcd would boot without
// the restored log, under another cluster id.
func startLine(opts snapshot.RestoreOptions, m snapshot.PlannedMember) string {
	args := []string{"etcd", "--name", m.Name, "--data-dir", dirOf(opts.DataDir, opts.Name, m.Name)}
	if opts.WALDir != "" {
		args = append(args, "--wal-dir", dirOf(opts.WALDir, opts.Name, m.Name))
	}
	return cli.ShellLine(append(args,
		"--initial-advertise-peer-urls", strings.Join(m.PeerURLs, ","), "--listen-peer-urls", strings.Join(m.PeerURLs, ","),
		"--initial-cluster", opts.InitialCluster, "--initial-cluster-state", "existing",
	)...)
}

// dirOf returns the directory of another member: the same, unless the member's
// own name is in it.
func dirOf(dir, name, other string) string {
	return strings.ReplaceAll(dir, name+".etcd", other+".etcd")
}
