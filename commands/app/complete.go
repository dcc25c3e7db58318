package app

import "github.com/spf13/cobra"

// Complete makes shells complete a flag by what fn offers.
func Complete(cmd *cobra.Command, flag string, fn cobra.CompletionFunc) {
	Must(cmd.RegisterFlagCompletionFunc(flag, fn))
}

// CompleteValues makes shells complete a flag by its values, and by files as
// upstream does.
func CompleteValues(cmd *cobra.Command, flag string, values ...string) {
	Complete(cmd, flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveDefault))
}

// Must panics where a flag does not exist: wrong code, seen by every test.
func Must(err error) {
	if err != nil {
		panic(err)
	}
}
