package commands

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/spf13/cobra"

	"github.com/etcdkit/etcdkit/commands/app"
	"github.com/etcdkit/etcdkit/internal/cli"
	"github.com/etcdkit/etcdkit/internal/config"
	"github.com/etcdkit/etcdkit/internal/output"
)

func newConfigCmd(a *app.App) *cobra.Command {
	return a.Group("config", "Look at the settings and the configuration file",
		newConfigViewCmd(a), newConfigValidateCmd(a), newConfigExampleCmd(a))
}

func newConfigViewCmd(a *app.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "view",
		Short: "Show every setting of this run and where it comes from",
		Long: `Shows the value of every setting and whether it comes from a flag, a variable,
the configuration file or is the default. Passwords and tokens are hidden.

Exit codes: 0; 2 a setting or the configuration file is wrong.`,
		Example: "  etcdkit config view\n  etcdkit config view --context prod -w json",
		Args:    cobra.NoArgs,
	}
	cmd.RunE = a.Run(func(context.Context, []string) error {
		return a.Print(settingsResult(a, a.Global.Settings(cmd.Flags())))
	})
	return cmd
}

// configView is the JSON of config view.
type configView struct {
	File         string           `json:"file"`
	Context      string           `json:"context"`
	Contexts     []string         `json:"contexts"`
	Repositories []string         `json:"repositories"`
	Settings     []config.Setting `json:"settings"`
}

func settingsResult(a *app.App, settings []config.Setting) output.Result {
	file := a.Global.File
	v := configView{
		File: file.Path, Context: a.Global.Context, Settings: settings,
		Contexts:     slices.AppendSeq([]string{}, maps.Keys(file.Contexts)),
		Repositories: slices.AppendSeq([]string{}, maps.Keys(file.Repositories)),
	}
	if v.Context == "" {
		v.Context = file.Current
	}
	slices.Sort(v.Contexts)
	slices.Sort(v.Repositories)
	table := func() ([]string, [][]string) {
		rows := make([][]string, len(settings))
		for i, s := range settings {
			rows[i] = []string{s.Name, s.Value, s.Source}
		}
		return []string{"setting", "value", "from"}, rows
	}
	return output.Result{JSON: v, Table: table, Simple: func(w io.Writer) {
		fmt.Fprintf(w, "configuration file: %s\n", orNone(v.File))
		fmt.Fprintf(w, "context: %s\n\n", orNone(v.Context))
		header, rows := table()
		output.Columns(w, header, rows)
	}}
}

func orNone(s string) string {
	if s == "" {
		return "none"
	}
	return s
}

func newConfigValidateCmd(a *app.App) *cobra.Command {
	return &cobra.Command{
		Use:   "validate [FILE]",
		Short: "Check a configuration file",
		Long: `Checks that the file has no unknown key, that every value is one its setting
takes, and that the secrets it refers to can be read. FILE is the one that
commands would use if not given.

Exit codes: 0 valid; 2 invalid, or there is none.`,
		Example: "  etcdkit config validate /etc/etcdkit/config.yaml",
		Args:    cobra.MaximumNArgs(1),
		RunE:    a.Run(func(_ context.Context, args []string) error { return runConfigValidate(a, args) }),
	}
}

func runConfigValidate(a *app.App, args []string) error {
	path := a.Global.File.Path
	if len(args) == 1 {
		path = args[0]
	}
	if path == "" {
		return cli.Usagef("there is no configuration file to check")
	}
	file, err := config.Load(path, a.Env)
	if err != nil {
		return cli.Usage(err)
	}
	if err := file.Validate(a.Env); err != nil {
		return cli.Usage(err)
	}
	if err := checkRepositories(file); err != nil {
		return err
	}
	for _, warning := range file.Warnings {
		a.Warn("%s", warning)
	}
	return a.Print(output.Result{
		JSON: map[string]any{"file": path, "valid": true, "warnings": append([]string{}, file.Warnings...)},
		Simple: func(w io.Writer) {
			fmt.Fprintf(w, "%s is valid: %s, %s\n", path, output.Count(len(file.Contexts), "context"), output.Count(len(file.Repositories), "repository"))
		},
	})
}

const configExample = `# etcdkit's configuration file: ~/.config/etcdkit/config.yaml or /etc/etcdkit/config.yaml.
# Flags and variables win over what stands here.

# The context that is used when --context names no other.
context: prod

# Clusters by name. Settings are named like the connection flags.
contexts:
  prod:
    endpoints: [https://10.0.0.1:2379, https://10.0.0.2:2379, https://10.0.0.3:2379]
    cacert: /etc/kubernetes/pki/etcd/ca.crt
    cert: /etc/kubernetes/pki/etcd/healthcheck-client.crt
    key: /etc/kubernetes/pki/etcd/healthcheck-client.key
  lab:
    endpoints: [http://127.0.0.1:2379]
    user: ops
    password: file:/run/secrets/etcd-password # or env:NAME; never the password itself

# Places for backups, used as @NAME.
repositories:
  main:
    url: s3://backups/etcd/prod
`

func newConfigExampleCmd(a *app.App) *cobra.Command {
	return &cobra.Command{
		Use:     "example",
		Short:   "Print a configuration file to start from",
		Long:    "Prints a configuration file with a comment on everything.\n\nExit codes: 0.",
		Example: "  etcdkit config example > ~/.config/etcdkit/config.yaml",
		Args:    cobra.NoArgs,
		RunE: a.Run(func(context.Context, []string) error {
			_, err := io.WriteString(a.Out, configExample)
			return err
		}),
	}
}
