package commands

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/etcdkit/etcdkit/commands/app"
)

// setHelp makes help pages that fit a screen: flags are wrapped at the
// terminal's width, and those that many commands share are left to "options".
func setHelp(a *app.App, root *cobra.Command) {
	wrapped := fmt.Sprintf(".FlagUsagesWrapped %d", a.Width)
	usage := strings.ReplaceAll(root.UsageTemplate(), ".FlagUsages", wrapped)
	root.SetUsageTemplate(strings.ReplaceAll(usage, "gt (len .Aliases) 0", "false")) // see keepAbbreviations
	help := root.HelpFunc()
	root.SetHelpFunc(func(cmd *cobra.Command, args []string) {
		moveExamples(cmd)
		bucket, restore := hideShared(cmd)
		defer restore()
		help(cmd, args)
		if bucket {
			fmt.Fprint(a.Out, "\nHow to reach a bucket (--s3-...), and what all commands share: \"etcdkit options\".\n")
			return
		}
		fmt.Fprintln(a.Out, "\nThe settings that all commands share are shown by \"etcdkit options\".")
	})
}

func eachCommand(cmd *cobra.Command, do func(*cobra.Command)) {
	do(cmd)
	for _, sub := range cmd.Commands() {
		eachCommand(sub, do)
	}
}

// moveExamples takes the command lines out of a long text, where etcdctl's
// commands have them, and puts them where cobra and its generated pages want
// examples.
func moveExamples(cmd *cobra.Command) {
	if cmd.Example != "" {
		return
	}
	var kept, examples []string
	for paragraph := range strings.SplitSeq(cmd.Long, "\n\n") {
		if strings.HasPrefix(paragraph, "  etcdkit ") {
			examples = append(examples, paragraph)
			continue
		}
		kept = append(kept, paragraph)
	}
	cmd.Long, cmd.Example = strings.Join(kept, "\n\n"), strings.Join(examples, "\n")
}

// hideShared hides the flags of a command that others have too, until restore
// is called. It tells whether there are some for a bucket.
func hideShared(cmd *cobra.Command) (bucket bool, restore func()) {
	var hidden []*pflag.Flag
	hide := func(f *pflag.Flag) {
		if !f.Hidden {
			f.Hidden = true
			hidden = append(hidden, f)
		}
	}
	cmd.Root().PersistentFlags().VisitAll(hide)
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if strings.HasPrefix(f.Name, "s3-") {
			bucket = true
			hide(f)
		}
	})
	return bucket, func() {
		for _, f := range hidden {
			f.Hidden = false
		}
	}
}
