package commands

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/etcdkit/etcdkit/commands/app"
	"github.com/etcdkit/etcdkit/internal/cli"
	"github.com/etcdkit/etcdkit/internal/etcd"
	"github.com/etcdkit/etcdkit/internal/kube"
	"github.com/etcdkit/etcdkit/internal/regular"
	"github.com/etcdkit/etcdkit/internal/scratch"
	"github.com/etcdkit/etcdkit/secrets"
	"github.com/etcdkit/etcdkit/snapshot"
)

// fit refuses flags that mean nothing for the source. What must not be found in
// a place that is not looked at would never be found.
func (f *secretsFlags) fit(source string, places []secrets.Place, failOn secrets.FailOn) error {
	info, err := os.Stat(source)
	dir := err == nil && info.IsDir()
	has := []secrets.Place{secrets.Live, secrets.History}
	switch {
	case dir:
		has = secrets.Places()
	case source != "":
		has = append(has, secrets.Free)
	}
	for _, p := range places {
		if !slices.Contains(has, p) {
			return fmt.Errorf("--place %s: only a data directory or a file has free pages, and only a data directory a log", p)
		}
	}
	looked := places
	switch {
	case looked == nil && source == "":
		looked = []secrets.Place{secrets.Live}
	case looked == nil:
		looked = has
	}
	for _, c := range failOn {
		if c.Place != "" && !slices.Contains(looked, c.Place) {
			return fmt.Errorf("--fail-on %s@%s: %s is not looked at, only %s", c.State, c.Place, c.Place, placeNames(looked))
		}
	}
	switch {
	case f.rate > 0 && source != "":
		return errors.New("--rate-limit is for a live cluster")
	case f.walDir != "" && !dir:
		return errors.New("--wal-dir is for a data directory")
	}
	return nil
}

func placeNames(places []secrets.Place) string {
	names := make([]string, len(places))
	for i, p := range places {
		names[i] = string(p)
	}
	return strings.Join(names, ", ")
}

// encryptionConfig reads the configuration that is named, or that the node's
// API server uses. It is nil where there is none.
func (f *secretsFlags) encryptionConfig(a *app.App, node fs.FS, found etcd.Found) (*kube.EncryptionConfig, error) {
	if f.config != "" {
		raw, err := a.ReadFile(f.config, maxConfigSize)
		if err != nil {
			return nil, fmt.Errorf("--encryption-config: %w", err)
		}
		return parseEncryptionConfig(io.NopCloser(bytes.NewReader(raw)), f.config)
	}
	name := found.EncryptionConfig
	if name == "" {
		return nil, nil
	}
	file, err := node.Open(strings.TrimPrefix(name, "/"))
	if err != nil {
		a.Warn("the API server's encryption configuration cannot be read, so it is not known what must be encrypted: %v", err)
		return nil, nil
	}
	a.Note("found the API server's encryption configuration: %s", name)
	return parseEncryptionConfig(file, name)
}

func parseEncryptionConfig(file io.ReadCloser, name string) (*kube.EncryptionConfig, error) {
	data, err := io.ReadAll(io.LimitReader(file, maxConfigSize))
	if err := errors.Join(err, file.Close()); err != nil {
		return nil, fmt.Errorf("--encryption-config: %w", err)
	}
	c, err := kube.ParseEncryptionConfig(data)
	if err != nil {
		return nil, fmt.Errorf("--encryption-config %s: %w", name, err)
	}
	return c, nil
}

// nodeOf finds what this node's files tell of its etcd and its API server,
// where the source is this node's etcd.
func nodeOf(a *app.App, source string) (root fs.FS, found etcd.Found, err error) {
	root = a.Global.Root
	if root == nil {
		root = os.DirFS("/")
	}
	if source == "" {
		_, err := a.Settings()
		return root, a.Global.Found, err
	}
	if a.Global.Discover == "none" {
		return root, etcd.Found{}, nil
	}
	found, err = etcd.Discover(root, "")
	if err != nil {
		return root, etcd.Found{}, nil // no node of Kubernetes, or not one that may be looked at
	}
	if abs, err := filepath.Abs(source); err != nil || found.DataDir == "" || abs != filepath.Clean(found.DataDir) {
		return root, etcd.Found{}, nil // some other directory
	}
	return root, found, nil
}

// scan scans the source, which is the live cluster if it has no name.
func (f *secretsFlags) scan(ctx context.Context, a *app.App, opts secrets.Options, source string) (*secrets.Report, error) {
	if source == "" {
		return f.scanCluster(ctx, a, opts)
	}
	report, err := f.scanStored(ctx, a, opts, source)
	if err != nil {
		return nil, err
	}
	report.Source = source
	return report, nil
}

func (f *secretsFlags) scanStored(ctx context.Context, a *app.App, opts secrets.Options, source string) (*secrets.Report, error) {
	info, err := os.Stat(source)
	switch {
	case err == nil && info.IsDir() && !isRepositoryDir(source):
		if len(f.trust) > 0 {
			return nil, cli.Usagef("--trust is for backups: %s has no manifest that could be signed", source)
		}
		return secrets.ScanDataDir(ctx, source, secrets.DataDirOptions{Options: opts, WALDir: f.walDir})
	case err == nil && info.Mode().IsRegular() && !isEncoded(source) && len(f.trust) == 0:
		return scanSecretsFile(ctx, source, opts)
	case err != nil && !isRepository(source) && !strings.Contains(source, "://"):
		if _, parentErr := os.Stat(filepath.Dir(source)); parentErr != nil || !isRepositoryDir(filepath.Dir(source)) {
			return nil, fmt.Errorf("scan: %w", err)
		}
	}
	return f.scanBackup(ctx, a, opts, source)
}

// isRepositoryDir reports whether a folder holds backups, and no member.
func isRepositoryDir(dir string) bool {
	for _, below := range []string{"member", "snap"} {
		if _, err := os.Stat(filepath.Join(dir, below)); err == nil {
			return false
		}
	}
	manifests, _ := filepath.Glob(filepath.Join(dir, "*.json"))
	more, _ := filepath.Glob(filepath.Join(dir, "*", "*.json"))
	return len(manifests)+len(more) > 0
}

// isEncoded reports whether a file is a snapshot that was compressed or
// encrypted. One that cannot be read is told of by who reads it.
func isEncoded(name string) bool {
	file, err := regular.Open(name)
	if err != nil {
		return false
	}
	defer file.Close()
	return snapshot.IsEncoded(file)
}

// scanBackup decodes a backup into a file that has no name, and scans that.
func (f *secretsFlags) scanBackup(ctx context.Context, a *app.App, opts secrets.Options, source string) (r *secrets.Report, err error) {
	backup, err := f.openSource(ctx, a, source, snapshot.OpenOptions{AnyTrailer: true, AnyQuorum: true})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, backup.Close()) }()
	for _, note := range backup.Notes {
		a.Note("%s", note)
	}
	file, err := scratch.NewFile(f.scratch, "etcdkit-scan-")
	if err != nil {
		return nil, fmt.Errorf("decode backup: %w", err)
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	if _, err := io.Copy(file, backup); err != nil {
		return nil, fmt.Errorf("decode backup %s: %w", backup.Name, err)
	}
	return secrets.ScanFile(ctx, secrets.OSFile{File: file.File}, opts)
}

func scanSecretsFile(ctx context.Context, name string, opts secrets.Options) (r *secrets.Report, err error) {
	file, err := regular.Open(name)
	if err != nil {
		return nil, fmt.Errorf("scan: %w", err)
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	return secrets.ScanFile(ctx, secrets.OSFile{File: file}, opts)
}

func (f *secretsFlags) scanCluster(ctx context.Context, a *app.App, opts secrets.Options) (r *secrets.Report, err error) {
	client, err := a.Client(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, client.Close()) }()
	r, err = secrets.ScanCluster(ctx, client, secrets.ClusterOptions{
		Options: opts, Timeout: a.Global.CommandTimeout, StallTimeout: watchStall, BytesPerSecond: int64(f.rate),
	})
	if err != nil {
		return nil, err
	}
	r.Source = strings.Join(client.Endpoints(), ",")
	return r, nil
}
