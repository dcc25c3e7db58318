package ctl

import (
	"context"

	"github.com/spf13/cobra"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/etcdkit/etcdkit/internal/output"
)

// downgradeAction is one of the three requests.
type downgradeAction struct {
	use, short, help string
	action           clientv3.DowngradeAction
	done             string // the sentence, before the version
}

func newDowngradeCmd(t *tree) *cobra.Command {
	validate := downgradeAction{
		use: "validate <TARGET_VERSION>", short: "Validate downgrade capability before starting downgrade",
		help: `Asks whether the cluster could go down to a version, one minor below its own.

  etcdkit downgrade validate 3.6

Exit codes: 0 it can, 1 it cannot or failed, 2 wrong usage.`,
		action: clientv3.DowngradeValidate, done: "Downgrade validate success, cluster version ",
	}
	enable := downgradeAction{
		use: "enable <TARGET_VERSION>", short: "Start a downgrade action to cluster",
		help: `Lets the members be replaced by servers of the next lower minor version, one by
one. It ends when all run that version, or with "downgrade cancel".

  etcdkit downgrade enable 3.6

Exit codes: 0 enabled, 1 failed, 2 wrong usage.`,
		action: clientv3.DowngradeEnable, done: "Downgrade enable success, cluster version ",
	}
	cancel := downgradeAction{
		use: "cancel", short: "Cancel the ongoing downgrade action to cluster",
		help: `Ends a downgrade that was enabled.

  etcdkit downgrade cancel

Exit codes: 0 cancelled, 1 failed, 2 wrong usage.`,
		action: clientv3.DowngradeCancel, done: "Downgrade cancel success, cluster version ",
	}
	return t.group("downgrade <TARGET_VERSION>", "Downgrade related commands. Use `etcdctl downgrade --help` to see subcommands", "Downgrade related commands", groupMaintenance,
		newDowngradeActionCmd(t, validate), newDowngradeActionCmd(t, enable), newDowngradeActionCmd(t, cancel))
}

func newDowngradeActionCmd(t *tree, a downgradeAction) *cobra.Command {
	cmd := &cobra.Command{
		Use: a.use, Short: a.short, Long: t.long("", a.help),
		RunE: t.run(func(ctx context.Context, args []string) error { return runDowngrade(ctx, t, args, a) }),
	}
	return t.offer(cmd, output.Protobuf)
}

func runDowngrade(ctx context.Context, t *tree, args []string, a downgradeAction) error {
	version, err := a.version(t, args)
	if err != nil {
		return err
	}
	return t.request(ctx, func(ctx context.Context, client *clientv3.Client) error {
		resp, err := client.Downgrade(ctx, a.action, version)
		if err != nil {
			return err
		}
		r := (*pb.DowngradeResponse)(resp)
		return t.print(result{json: r, proto: r, simple: lines(a.done + r.GetVersion())})
	})
}

func (a downgradeAction) version(t *tree, args []string) (string, error) {
	switch {
	case a.action == clientv3.DowngradeCancel:
		return "", t.tooMany(args, 0)
	case len(args) < 1:
		return "", badArgs("TARGET_VERSION not provided")
	case len(args) > 1:
		return "", badArgs("too many arguments")
	case args[0] == "":
		return "", badArgs("target version not provided")
	}
	return args[0], nil
}
