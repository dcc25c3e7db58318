package commands

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"filippo.io/age"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/etcdkit/etcdkit/commands/app"
	"github.com/etcdkit/etcdkit/internal/cli"
	"github.com/etcdkit/etcdkit/internal/config"
	"github.com/etcdkit/etcdkit/internal/hint"
	"github.com/etcdkit/etcdkit/internal/store"
	"github.com/etcdkit/etcdkit/snapshot"
)

// repoFlags are the flags of commands that use a repository.
type repoFlags struct {
	store.S3Options
	encryptTo []string
	identity  []string
	signFlags
	keep   keepFlags
	set    *pflag.FlagSet
	prefix string // of the flags
}

// bindS3 defines how to reach a bucket; prefix tells the flags of a second
// repository from those of the first.
func (f *repoFlags) bindS3(cmd *cobra.Command, prefix string) {
	f.set, f.prefix = cmd.Flags(), prefix
	o, fs := &f.S3Options, f.set
	fs.StringVar(&o.Endpoint, prefix+"s3-endpoint", "", "URL of the S3 service (default AWS)")
	fs.StringVar(&o.Region, prefix+"s3-region", "", "region of the bucket")
	fs.StringVar(&o.Addressing, prefix+"s3-addressing", "auto", "where the bucket stands in requests: auto, path, dns")
	fs.StringVar(&o.CAFile, prefix+"s3-ca-file", "", "PEM file with the service's certificate authority")
	fs.BoolVar(&o.InsecureSkipVerify, prefix+"s3-insecure-skip-verify", false, "do not verify the service's certificate")
	fs.StringVar(&o.Checksum, prefix+"s3-checksum", "auto", "checksum of uploads: auto, crc32c, sha256, md5, none")
	fs.StringVar(&o.SSE, prefix+"s3-sse", "", "server-side encryption: s3, kms:KEYID or c:FILE with a key")
	fs.StringVar(&o.Profile, prefix+"s3-profile", "", "profile of the AWS configuration files to use alone")
	fs.StringVar(&o.Proxy, prefix+"s3-proxy", "", "URL of a proxy, or none; env:NAME or file:PATH for one with a password (default from the environment)")
	fs.DurationVar(&o.RetryFor, prefix+"s3-retry-for", store.DefaultRetryFor, "how long to repeat a request that fails in a way that may pass")
	for _, name := range []string{"endpoint", "region", "addressing", "ca-file", "insecure-skip-verify", "checksum", "sse", "profile", "proxy", "retry-for"} {
		config.Env(fs, prefix+"s3-"+name)
	}
}

// bindIdentity defines what decrypts backups.
func (f *repoFlags) bindIdentity() {
	f.set.StringSliceVar(&f.identity, "identity", nil, "file with an age identity that decrypts backups; may be repeated")
	config.Env(f.set, "identity")
}

// bindEncryption defines what encrypts backups.
func (f *repoFlags) bindEncryption() {
	f.set.StringSliceVar(&f.encryptTo, "encrypt-to", nil, "age recipient to encrypt to, or a file of them; may be repeated")
	config.Env(f.set, "encrypt-to")
}

// checkRepositories refuses values that the flags of a repository refuse. Other
// commands find them only when they use the repository.
func checkRepositories(file *config.File) error {
	for _, name := range slices.Sorted(maps.Keys(file.Repositories)) {
		var f repoFlags
		cmd := &cobra.Command{}
		f.bindS3(cmd, "")
		f.bindIdentity()
		f.bindEncryption()
		f.bindTrust()
		f.bindSigning()
		f.keep.bind(cmd.Flags())
		settings := file.Repositories[name].Settings
		for _, flag := range slices.Sorted(maps.Keys(settings)) {
			if err := config.FillFrom(f.set, flag, settings[flag]); err != nil {
				return badRepositorySetting(file, name, flag, err)
			}
		}
	}
	return nil
}

func badRepositorySetting(file *config.File, name, flag string, err error) error {
	return cli.Usage(fmt.Errorf("configuration file %s: line %d: repository %s: %s: %w",
		file.Path, file.Repositories[name].Settings[flag].Line, name, config.RepositoryKey(flag), err))
}

// isRepository reports whether a target names a repository, and not a file.
func isRepository(target string) bool {
	return store.IsS3(target) || strings.HasPrefix(target, "@") || strings.HasSuffix(target, "/") || strings.HasSuffix(target, string(os.PathSeparator))
}

// locate resolves @NAME to the repository's location and takes its settings
// from the configuration file where no flag or variable gave one.
func (f *repoFlags) locate(a *app.App, location, prefix string) (string, error) {
	rest, named := strings.CutPrefix(location, "@")
	if !named {
		return location, nil
	}
	name, below, _ := strings.Cut(rest, "/")
	repository, ok := a.Global.File.Repositories[name]
	if !ok {
		names := slices.Sorted(maps.Keys(a.Global.File.Repositories))
		return "", cli.Usage(hint.With(fmt.Errorf("repository @%s is not in the configuration file", name), "%s", config.Known("repositories", names, name)))
	}
	for _, flag := range slices.Sorted(maps.Keys(repository.Settings)) {
		if err := config.FillFrom(f.set, prefix+flag, repository.Settings[flag]); err != nil {
			return "", badRepositorySetting(a.Global.File, name, flag, err)
		}
	}
	return strings.TrimSuffix(repository.URL, "/") + "/" + below, nil
}

// open opens the repository at a location that locate has resolved.
func (f *repoFlags) open(ctx context.Context, a *app.App, location string) (store.Store, error) {
	opts := f.S3Options
	opts.FlagPrefix = f.prefix
	if opts.Region == "" {
		opts.Region = cmp.Or(a.Getenv("AWS_REGION"), a.Getenv("AWS_DEFAULT_REGION"))
	}
	if opts.Endpoint == "" {
		opts.Endpoint = cmp.Or(a.Getenv("AWS_ENDPOINT_URL_S3"), a.Getenv("AWS_ENDPOINT_URL"))
	}
	var err error
	if opts.Proxy, err = config.Reference(opts.Proxy, a.Env); err != nil {
		return nil, cli.Usage(fmt.Errorf("--s3-proxy: %w", err))
	}
	if opts.InsecureSkipVerify && store.IsS3(location) {
		a.Remind("--%ss3-insecure-skip-verify: the certificate of the S3 service is not verified; anybody on the way can read and change backups", f.prefix)
	}
	var once sync.Once
	opts.Retrying = func(err error) {
		once.Do(func() { a.Note("trying again for up to %s: %v", opts.RetryFor, err) })
	}
	opts.MetadataEndpoint = a.Getenv("AWS_EC2_METADATA_SERVICE_ENDPOINT")
	signing, err := f.signing(a)
	if err != nil {
		return nil, err
	}
	s, err := store.Open(ctx, location, opts)
	if err != nil {
		return nil, storeKind(err)
	}
	return signing.Repository(s), nil
}

// repository resolves and opens a repository.
func (f *repoFlags) repository(ctx context.Context, a *app.App, location string) (store.Store, error) {
	location, err := f.locate(a, location, "")
	if err != nil {
		return nil, err
	}
	return f.open(ctx, a, location)
}

// existing resolves and opens a repository that is only read. A folder that is
// not there is an error then, not one without backups: it is a typing error, or
// a disk that is not mounted.
func (f *repoFlags) existing(ctx context.Context, a *app.App, location string) (store.Store, error) {
	location, err := f.locate(a, location, "")
	if err != nil {
		return nil, err
	}
	repo, err := f.open(ctx, a, location)
	if err != nil || store.IsS3(location) {
		return repo, err
	}
	info, err := os.Stat(location)
	switch {
	case err != nil:
		return nil, hint.With(err, "REPO is a folder, s3://BUCKET/PREFIX/ or @NAME; check the path, and that its disk is mounted")
	case !info.IsDir():
		return nil, hint.With(fmt.Errorf("%s is a file, not a repository", location), "REPO is a folder, s3://BUCKET/PREFIX/ or @NAME")
	}
	return repo, nil
}

// openSource opens the snapshot that source names, with the keys that the flags
// name.
func (f *repoFlags) openSource(ctx context.Context, a *app.App, source string, opts snapshot.OpenOptions) (*snapshot.Opened, error) {
	location, err := f.locate(a, source, "")
	if err != nil {
		return nil, err
	}
	if opts.Identities, err = f.identities(a); err != nil {
		return nil, err
	}
	if opts.Signing, err = f.signing(a); err != nil {
		return nil, err
	}
	opts.OpenStore = func(ctx context.Context, location string) (store.Store, error) { return f.open(ctx, a, location) }
	o, err := snapshot.OpenSource(ctx, location, opts)
	return o, storeKind(err)
}

// storeKind gives errors of backups and their stores their exit code.
func storeKind(err error) error {
	if errors.Is(err, store.ErrConfig) || errors.Is(err, snapshot.ErrOptions) {
		return cli.Usage(err)
	}
	return err
}

// unreachable gives errors of a command that judges a repository theirs: what
// could not be looked at is not judged.
func unreachable(err error) error {
	if err == nil || errors.Is(err, cli.ErrUsage) || errors.Is(err, cli.ErrVerdict) {
		return err
	}
	if err := storeKind(err); errors.Is(err, cli.ErrUsage) {
		return err
	}
	return cli.CannotTell(err)
}

// identities reads the identity files.
func (f *repoFlags) identities(a *app.App) ([]age.Identity, error) {
	var all []age.Identity
	for _, name := range f.identity {
		if isIdentity(name) {
			return nil, cli.Usagef("--identity takes a file, not the identity itself, which every user of this machine could read")
		}
		raw, err := a.ReadFile(name, cli.MaxSecretFile)
		if err != nil {
			return nil, cli.Usage(fmt.Errorf("read identity: %w", err))
		}
		ids, err := snapshot.ParseIdentities(raw)
		if err != nil {
			return nil, cli.Usage(hint.With(fmt.Errorf("identity file %s: %w", name, err), "make one with age-keygen"))
		}
		all = append(all, ids...)
	}
	return all, nil
}

// isIdentity reports whether a value is an age identity, a secret that no error
// may show.
func isIdentity(value string) bool {
	return strings.HasPrefix(strings.ToUpper(value), "AGE-SECRET-KEY-")
}

// recipients parses --encrypt-to: recipients, or files of them.
func (f *repoFlags) recipients(a *app.App) ([]age.Recipient, error) {
	var all []age.Recipient
	for _, value := range f.encryptTo {
		if isIdentity(value) {
			return nil, cli.Usage(hint.With(errors.New("--encrypt-to takes the recipient, not the identity, which is secret"), "age-keygen -y prints the recipient of an identity"))
		}
		raw := []byte(value)
		if !strings.HasPrefix(value, "age1") {
			var err error
			if raw, err = a.ReadFile(value, cli.MaxSecretFile); err != nil {
				return nil, cli.Usage(hint.With(fmt.Errorf("--encrypt-to: %w", err), "a recipient begins with age1, anything else is a file of recipients"))
			}
		}
		some, err := snapshot.ParseRecipients(raw)
		if err != nil {
			return nil, cli.Usage(fmt.Errorf("--encrypt-to: %w", err))
		}
		all = append(all, some...)
	}
	return all, nil
}

// runsDir is where runs leave their files.
func runsDir(a *app.App) string { return filepath.Join(a.StateDir(), "runs") }
