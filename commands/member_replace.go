package commands

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"time"

	"github.com/spf13/cobra"

	"github.com/etcdkit/etcdkit/commands/app"
	"github.com/etcdkit/etcdkit/health"
	"github.com/etcdkit/etcdkit/internal/cli"
)

func newMemberReplaceCmd(a *app.App) *cobra.Command {
	var opts health.ReplaceOptions
	var abort string
	cmd := &cobra.Command{
		Use:   "replace OLD | replace --abort ID",
		Short: "Put a new member in the place of an old one",
		Long: `Replaces the member OLD (its id, its name, or one of its URLs), guided and with the
quorum's arithmetic shown. A member that is not alive, or whose peer URL the new one
takes, is removed first; one that is alive stays until the new one has a vote. The
new member is added as a learner; the command prints how to start it, waits until it
has caught up, and promotes it.

Every step is checked before the first: quorum after each change, and whether etcd
takes another learner. Ended at any moment, the command continues when it is run
again; --abort gives the replacement up instead: it removes the new member while
that is a learner, and forgets the replacement.

Exit codes: 0 replaced; 1 failed, or the new member was not ready by --deadline;
2 wrong usage; 4 nothing answered; 5 refused: quorum is or would be lost, another
learner is in the way, another maintenance runs; 129, 130, 131, 143 ended by a signal.`,
		Example: "  etcdkit member replace m2 --name m4 --peer-urls https://10.0.0.4:2380 --dry-run\n  etcdkit member replace --abort 8f1a3c5d7e9b2046",
		Args:    cobra.MaximumNArgs(1),
		RunE: a.Run(func(ctx context.Context, args []string) error {
			if abort != "" {
				return abortReplace(ctx, a, args, health.AbortOptions{Old: abort, DryRun: opts.DryRun})
			}
			if len(args) == 0 {
				return cli.Usagef("the member to replace is missing: its id, its name, or one of its URLs")
			}
			opts.Old, opts.Force = args[0], a.Global.Force
			return runMemberReplace(ctx, a, opts)
		}),
	}
	f := cmd.Flags()
	f.StringVar(&opts.Name, "name", "", "name of the new member")
	f.StringSliceVar(&opts.PeerURLs, "peer-urls", nil, "peer URLs of the new member")
	f.DurationVar(&opts.Deadline, "deadline", 30*time.Minute, "how long the new member may take to start and catch up")
	f.StringVar(&abort, "abort", "", "give up the replacement of the member with this id that has begun")
	f.BoolVar(&opts.DryRun, "dry-run", false, "show the plan and do nothing")
	return cmd
}

func abortReplace(ctx context.Context, a *app.App, args []string, opts health.AbortOptions) error {
	if len(args) > 0 {
		return cli.Usagef("--abort takes the id of the old member, without another argument: %q", args[0])
	}
	tools, endpoints, err := a.Tools(ctx, nil)
	if err != nil {
		return err
	}
	out, err := health.AbortReplace(ctx, tools, endpoints, opts)
	return errors.Join(a.Print(outcomeView(out, err)), app.Judged(err))
}

func runMemberReplace(ctx context.Context, a *app.App, opts health.ReplaceOptions) error {
	if opts.Name == "" || len(opts.PeerURLs) == 0 {
		return cli.Usagef("--name and --peer-urls of the new member are needed")
	}
	opts.PeerURLs = health.CleanURLs(opts.PeerURLs)
	for _, u := range opts.PeerURLs {
		if parsed, err := url.Parse(u); err != nil || parsed.Host == "" || parsed.Port() == "" {
			return cli.Usagef("--peer-urls %q: https://HOST:2380 is wanted", u)
		}
	}
	tools, endpoints, err := a.Tools(ctx, nil)
	if err != nil {
		return err
	}
	opts.Added = func(command string) {
		fmt.Fprintf(a.Err, "\nstart the new member with an empty data directory, its own TLS flags added:\n\n%s\n\n", command)
	}
	opts.Progress = a.TellPromotion()
	out, err := health.Replace(ctx, tools, endpoints, opts)
	return errors.Join(a.Print(outcomeView(out, err)), app.Judged(err))
}
