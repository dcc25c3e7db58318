package app_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/etcdkit/etcdkit/commands/app"
	"github.com/etcdkit/etcdkit/internal/cli"
)

func TestValuesThatNoFlagCanMeanAreRefused(t *testing.T) {
	for line, want := range map[string]string{
		"--pause -1s":            "--pause -1s: a time cannot be negative",
		"--share 1.5":            "--share 1.5: want a share between 0 and 1, such as 0.5",
		"--share -0.1":           "--share -0.1: want a share",
		"--share NaN":            "--share NaN: want a share",
		"--share +Inf":           "--share +Inf: want a share",
		"--command-timeout 0":    "every request would time out at once",
		"--command-timeout 0s":   "every request would time out at once",
		"--dial-timeout -1s":     "--dial-timeout -1s: a time cannot be negative",
		"--share 0 --pause 0":    "",
		"--share 1":              "",
		"--command-timeout 10s":  "",
		"--command-timeout 1ms":  "",
		"--command-timeout 100s": "",
	} {
		t.Run(line, func(t *testing.T) {
			var stderr strings.Builder
			a := app.New("etcdkit", cli.Native, &cli.Env{Out: &strings.Builder{}, Err: &stderr})
			root := &cobra.Command{
				Use: "etcdkit", SilenceErrors: true, SilenceUsage: true, PersistentPreRunE: a.Prepare,
				RunE: a.Run(func(context.Context, []string) error { return nil }),
			}
			a.Global.Bind(root.PersistentFlags(), a.Dialect)
			root.Flags().Duration("pause", time.Second, "")
			root.Flags().Float64("share", 0.5, "")
			root.SetArgs(strings.Fields(line))
			cmd, err := root.ExecuteContextC(t.Context())
			code := a.Report(cmd.CommandPath(), err)
			if want == "" && code != 0 || want != "" && (code != 2 || !strings.Contains(stderr.String(), want)) {
				t.Errorf("exit code %d and %q, want %q", code, stderr.String(), want)
			}
		})
	}
}
