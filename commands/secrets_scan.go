package commands

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"

	"github.com/etcdkit/etcdkit/commands/app"
	"github.com/etcdkit/etcdkit/internal/cli"
	"github.com/etcdkit/etcdkit/internal/hint"
	"github.com/etcdkit/etcdkit/internal/kube"
	"github.com/etcdkit/etcdkit/internal/metricsfile"
	"github.com/etcdkit/etcdkit/internal/output"
	"github.com/etcdkit/etcdkit/internal/progress"
	"github.com/etcdkit/etcdkit/secrets"
)

const (
	// maxConfigSize bounds an EncryptionConfiguration file.
	maxConfigSize = 8 << 20
	// watchStall bounds how long a watch of the history may say nothing.
	watchStall = 30 * time.Second
)

// secretsFlags are the flags of secrets scan as they are typed.
type secretsFlags struct {
	repoFlags
	config, walDir   string
	scratch          string
	prefixes, places []string
	failOn           []string
	metrics          string
	rate             byteSize
	limit            int
	decrypt, detect  bool
	changed          func(flag string) bool // whether a flag was given
}

func newSecretsCmd(a *app.App) *cobra.Command {
	return a.Group("secrets", "Prove from the stored bytes that Secrets are encrypted", newSecretsScanCmd(a))
}

func newSecretsScanCmd(a *app.App) *cobra.Command {
	f := &secretsFlags{}
	cmd := &cobra.Command{
		Use:   "scan [SOURCE]",
		Short: "Tell which stored Kubernetes objects are not encrypted, from the bytes",
		Long: `Reads what etcd has stored and tells, by name and never by value, which Secrets
are in clear and with which provider and key the others are encrypted. SOURCE is a
snapshot file, a database file, a data directory, of a stopped or a running member,
or a backup, as snapshot restore takes it: a repository for its latest one, or
REPO/NAME. Without SOURCE it is the live cluster. Nothing is changed anywhere.

Five places are looked at, as far as the source has them:
  live     what a read of the cluster returns
  history  older revisions and deleted objects that are not compacted yet
  free     pages of the file that compaction freed and no defragmentation removed
  wal      the write-ahead log of the data directory, with databases received
  other    files in the data directory that the member does not use: an old member
           that a restore moved aside, copies of the database, old logs
A live cluster has live, and with --place live,history also history.

With --encryption-config every resource that the file lists is checked, against
the provider and the key that come first for it. On a node whose files tell where
its API server's configuration is, that one is taken; what they tell of the etcd
prefix counts beside what is found by looking. --decrypt-check proves that every
value opens with the file's keys, or by its key management plugin.

--detect also looks into every object in clear but Secrets, and into Helm's releases,
for what looks like a credential: keys, tokens and the like that have a form of their
own. It names the object and the kind, and reads all of Kubernetes' objects for it.

Exit codes: 0 nothing found that must not be; 1 failed; 2 wrong usage or a broken
configuration; 3 found what --fail-on names, or a value that does not open; 4 a
place could not be read, and nothing was found.`,
		Example: "  etcdkit secrets scan\n" +
			"  etcdkit secrets scan backup.db --encryption-config /etc/kubernetes/enc.yaml --decrypt-check\n" +
			"  etcdkit secrets scan @main --identity key.txt\n" +
			"  etcdkit secrets scan /var/lib/etcd --fail-on plain,unknown,stale@live -w json",
		Args: cobra.MaximumNArgs(1),
		RunE: a.Run(func(ctx context.Context, args []string) error { return runSecretsScan(ctx, a, f, args) }),
	}
	f.bind(cmd)
	cmd.ValidArgsFunction = f.complete(a)
	return app.Formats(cmd, append(output.Standard(), formatSARIF)...)
}

// bind adds the flags to cmd.
func (f *secretsFlags) bind(cmd *cobra.Command) {
	f.bindS3(cmd, "")
	f.bindTrust()
	f.bindIdentity()
	fs := cmd.Flags()
	f.changed = fs.Changed
	fs.StringVar(&f.scratch, "scratch", "", "folder for the decoded copy of a backup, removed at the end (default the system's for temporary files)")
	fs.StringVar(&f.config, "encryption-config", "", "the API server's EncryptionConfiguration file")
	fs.StringSliceVar(&f.prefixes, "etcd-prefix", nil, "etcd prefix of Kubernetes, such as /registry (default: found by looking)")
	fs.StringSliceVar(&f.places, "place", nil, "places to look at: live, history, free, wal, other (default: all that the source has; of a cluster, live)")
	fs.StringSliceVar(&f.failOn, "fail-on", defaultFailOn(), "states that must not be found, or credentials, each as STATE or STATE@PLACE")
	fs.StringVar(&f.metrics, "metrics-file", "", "write the counts to this file, for Prometheus' textfile collector")
	fs.StringVar(&f.walDir, "wal-dir", "", "folder of the write-ahead log, if it is not in the data directory")
	fs.Var(&f.rate, "rate-limit", "bytes that are read from a live cluster per second, such as 10MiB")
	fs.IntVar(&f.limit, "limit", 20, "objects named in the words for people; 0 names all")
	fs.BoolVar(&f.decrypt, "decrypt-check", false, "prove that every value opens with the keys of --encryption-config")
	fs.BoolVar(&f.detect, "detect", false, "look for what looks like credentials in other objects in clear, and in Helm releases")
	completeList(cmd, "place", secrets.Places())
	completeList(cmd, "fail-on", secrets.Conditions())
}

func defaultFailOn() (conditions []string) {
	for _, c := range secrets.DefaultFailOn() {
		conditions = append(conditions, c.String())
	}
	return conditions
}

// completeList makes shells complete a flag's values.
func completeList[T ~string](cmd *cobra.Command, flag string, values []T) {
	var choices []cobra.Completion
	for _, v := range values {
		choices = append(choices, string(v))
	}
	app.Complete(cmd, flag, cobra.FixedCompletions(choices, cobra.ShellCompDirectiveNoFileComp))
}

// formatSARIF is the format of code scanners.
const formatSARIF output.Format = "sarif"

func runSecretsScan(ctx context.Context, a *app.App, f *secretsFlags, args []string) error {
	source := slices.Concat(args, []string{""})[0]
	opts, failOn, err := f.options(a, source)
	if err != nil {
		return cli.Usage(err)
	}
	closePlugins := f.plugins(ctx, a, &opts)
	meter := progress.To(a.Err, a.Live, a.Now, "scanning "+source)
	if !a.Global.Quiet && source != "" {
		opts.Progress = meter.Update
	}
	report, err := f.scan(ctx, a, opts, source)
	meter.Done()
	err = errors.Join(err, closePlugins())
	var metricsErr error
	if f.metrics != "" {
		metricsErr = metricsfile.Write(f.metrics, secrets.Metrics(report, failOn, a.Now()), secrets.MetricLastSuccess)
	}
	if err != nil {
		return cli.CannotTell(errors.Join(adviseScan(err), metricsErr))
	}
	for i := range report.Next {
		report.Next[i].Command = a.NextStep(report.Next[i].Command)
	}
	return errors.Join(a.Print(secretsView(report, failOn, f.limit)), judgeSecrets(report, failOn), metricsErr)
}

// secretsView lists the forms of a report.
func secretsView(r *secrets.Report, failOn secrets.FailOn, limit int) output.Result {
	return output.Result{
		JSON:   r,
		Simple: func(w io.Writer) { printSecrets(w, r, limit) },
		Table:  func() ([]string, [][]string) { return secretsTable(r) },
		Other: map[output.Format]func(io.Writer) error{formatSARIF: func(w io.Writer) error {
			return output.JSON.Print(w, output.Result{JSON: r.SARIF(failOn)})
		}},
	}
}

// judgeSecrets turns the verdict on a report into an exit code.
func judgeSecrets(r *secrets.Report, failOn secrets.FailOn) error {
	err := r.Verdict(failOn)
	if errors.Is(err, secrets.ErrIncomplete) {
		return cli.CannotTell(err)
	}
	return cli.Verdict(err)
}

// options turns the flags into what the scan of a source wants.
func (f *secretsFlags) options(a *app.App, source string) (opts secrets.Options, failOn secrets.FailOn, err error) {
	if err := f.ensureNotEmpty(); err != nil {
		return opts, nil, err
	}
	for _, p := range f.prefixes {
		opts.Prefixes = append(opts.Prefixes, strings.TrimSuffix(path.Join("/", p), "/")) // as the API server does
	}
	if opts.Places, err = secrets.ParsePlaces(f.places); err != nil {
		return opts, nil, fmt.Errorf("--place: %w", err)
	}
	if failOn, err = secrets.ParseFailOn(f.failOn); err != nil {
		return opts, nil, fmt.Errorf("--fail-on: %w", err)
	}
	detects := slices.ContainsFunc(failOn, func(c secrets.Condition) bool { return c.State == secrets.Credentials })
	if opts.Detect = f.detect; detects && !f.detect {
		return opts, nil, errors.New("--fail-on credentials needs --detect")
	}
	if err := f.fit(source, opts.Places, failOn); err != nil {
		return opts, nil, err
	}
	node, found, err := nodeOf(a, source)
	if err != nil {
		return opts, nil, err
	}
	opts.Known = found.KeyPrefixes
	if opts.Config, err = f.encryptionConfig(a, node, found); err == nil && opts.Config == nil && f.decrypt {
		err = errors.New("--decrypt-check needs --encryption-config, for the keys")
	}
	return opts, failOn, err
}

// ensureNotEmpty refuses lists that were given and name nothing: they would turn
// off what they narrow.
func (f *secretsFlags) ensureNotEmpty() error {
	for name, list := range map[string][]string{"place": f.places, "etcd-prefix": f.prefixes, "fail-on": f.failOn} {
		if f.changed != nil && f.changed(name) && len(list) == 0 {
			return fmt.Errorf("--%s is empty", name)
		}
	}
	return nil
}

// plugins connects to the key management plugins whose sockets are there: only
// they know which key is the current one, and only they can open.
func (f *secretsFlags) plugins(ctx context.Context, a *app.App, opts *secrets.Options) (closeAll func() error) {
	plugins := make(map[string]*kube.Plugin)
	closeAll = func() error {
		var errs []error
		for _, p := range plugins {
			errs = append(errs, p.Close())
		}
		return errors.Join(errs...)
	}
	if opts.Config == nil {
		return closeAll
	}
	opts.CurrentKeys = make(map[string]string)
	for _, cfg := range opts.Config.KMSPlugins() {
		name := kube.Provider{KMS: &cfg}.Name()
		if !cfg.SocketExists() {
			continue
		}
		p, keyID, err := kube.DialPlugin(ctx, cfg)
		if err != nil {
			a.Warn("%v", err)
			continue
		}
		plugins[name] = p
		if keyID != "" {
			opts.CurrentKeys[name] = keyID
		}
	}
	if f.decrypt {
		opts.Opener = kube.NewOpener(opts.Config, plugins)
	}
	return closeAll
}

// adviseScan adds what to try where a scan found nothing to look at.
func adviseScan(err error) error {
	if errors.Is(err, rpctypes.ErrPermissionDenied) {
		return hint.With(err, "the user may not read everything: give the prefix that it may read with --etcd-prefix, such as /registry")
	}
	if errors.Is(err, secrets.ErrNotKubernetes) {
		return hint.With(err, "--etcd-prefix says where Kubernetes keeps its objects")
	}
	return err
}
