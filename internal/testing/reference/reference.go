// Package reference builds the upstream programs that this project is measured
// against: the etcd servers of every supported version, etcdctl, etcdutl, and
// versitygw, an S3 server over a folder.
//
// Each program has a module file of its own, mod/<program>.mod with its .sum,
// whose tool line names the package to build. So no program's dependencies
// move another's, or this module's.
package reference

import (
	"bytes"
	"context"
	"crypto/sha256"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"go.etcd.io/etcd/client/pkg/v3/fileutil"
)

// A Program is one upstream program at one version, written as name-version.
type Program string

// The programs that can be built. Etcd35, Etcd36 and Etcd37 are the newest
// patches of the supported versions.
const (
	Etcd35    Program = "etcd-3.5.35"
	Etcd36    Program = "etcd-3.6.16"
	Etcd37    Program = "etcd-3.7.3"
	Etcdctl   Program = "etcdctl-3.7.3"
	Etcdutl   Program = "etcdutl-3.7.3"
	Versitygw Program = "versitygw-1.8.0"

	// Etcd3515 leaves members behind that come back in 3.6 (etcd-io/etcd#19557).
	// It is not among All: the full tests build it when they need it.
	Etcd3515 Program = "etcd-3.5.15"
)

// EnvDir names the variable that moves the folder in which the programs are
// kept, by default etcdkit/reference in the user's cache folder.
const EnvDir = "ETCDKIT_REFERENCE_DIR"

const (
	buildTimeout = 15 * time.Minute // of one program, cold, on a busy machine
	lockPoll     = 200 * time.Millisecond
)

// A program is its two files: a .mod without its .sum does not build.
//
//go:embed mod/*.mod mod/*.sum
var mods embed.FS

// All returns every program.
func All() []Program {
	return append(Servers(), Etcdctl, Etcdutl, Versitygw)
}

// Servers returns the etcd server of every supported version, oldest first.
func Servers() []Program { return []Program{Etcd35, Etcd36, Etcd37} }

// Name returns the program's file name, such as "etcdctl".
func (p Program) Name() string {
	name, _, _ := strings.Cut(string(p), "-")
	return name + exe()
}

// Version returns the program's version, such as "3.7.3".
func (p Program) Version() string {
	_, version, _ := strings.Cut(string(p), "-")
	return version
}

// Path returns the path of the program, and builds it if no test has yet. It
// fails the test if that is not possible.
func Path(t testing.TB, p Program) string {
	t.Helper()
	path, err := Build(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// Build returns the path of the program, and builds it unless it is in the
// cache already. Any number of processes may ask at once: one builds.
func Build(ctx context.Context, p Program) (string, error) {
	files, err := filesOf(p)
	if err != nil {
		return "", err
	}
	root, err := cacheDir()
	if err != nil {
		return "", fmt.Errorf("build %s: %w", p, err)
	}
	dir := filepath.Join(root, string(p)+"-"+files.key())
	path := filepath.Join(dir, p.Name())
	if _, err := os.Stat(path); err == nil {
		return path, nil
	}
	if err := os.MkdirAll(root, 0o755); err != nil {
		return "", fmt.Errorf("build %s: %w", p, err)
	}
	ctx, cancel := context.WithTimeout(ctx, buildTimeout)
	defer cancel()
	unlock, err := lock(ctx, dir+".lock")
	if err != nil {
		return "", fmt.Errorf("build %s: wait for another build of it: %w", p, err)
	}
	defer unlock()
	if _, err := os.Stat(path); err == nil {
		return path, nil // the process before us built it
	}
	if err := files.build(ctx, p, dir); err != nil {
		return "", fmt.Errorf("build %s: %w", p, err)
	}
	return path, nil
}

// moduleFiles are the two files that pin a program.
type moduleFiles struct{ mod, sum []byte }

func filesOf(p Program) (moduleFiles, error) {
	mod, err := mods.ReadFile("mod/" + string(p) + ".mod")
	if errors.Is(err, fs.ErrNotExist) {
		return moduleFiles{}, fmt.Errorf("build %s: no such program; there are %v", p, All())
	}
	if err != nil {
		return moduleFiles{}, err
	}
	sum, err := mods.ReadFile("mod/" + string(p) + ".sum")
	return moduleFiles{mod: mod, sum: sum}, err
}

// key tells builds apart that would differ: by a moved dependency, another
// toolchain, another platform.
func (f moduleFiles) key() string {
	h := sha256.New()
	h.Write(f.mod)
	h.Write(f.sum)
	fmt.Fprintln(h, runtime.Version(), runtime.GOOS, runtime.GOARCH)
	return fmt.Sprintf("%x", h.Sum(nil)[:4])
}

// tool returns the package named by the module file's tool line.
func (f moduleFiles) tool() (string, error) {
	for line := range strings.Lines(string(f.mod)) {
		if pkg, ok := strings.CutPrefix(strings.TrimSpace(line), "tool "); ok {
			return pkg, nil
		}
	}
	return "", errors.New("its module file has no tool line")
}

// build compiles the program beside dir and moves it there when it is whole.
// The caller holds the lock, so whatever stands beside dir is a dead build's.
func (f moduleFiles) build(ctx context.Context, p Program, dir string) error {
	pkg, err := f.tool()
	if err != nil {
		return err
	}
	tmp := dir + ".tmp"
	if err := os.RemoveAll(tmp); err != nil {
		return err
	}
	defer os.RemoveAll(tmp)
	if err := os.MkdirAll(tmp, 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(tmp, "go.mod"), f.mod, 0o644); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(tmp, "go.sum"), f.sum, 0o644); err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, "go", "build", "-mod=readonly", "-buildvcs=false", "-ldflags=-s -w", "-o", p.Name(), pkg)
	cmd.Dir = tmp
	// Nothing of the caller's build may reach this one, but where modules come from.
	cmd.Env = append(os.Environ(), "GOFLAGS=", "GOWORK=off", "CGO_ENABLED=0", "GOOS="+runtime.GOOS, "GOARCH="+runtime.GOARCH)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("go build %s: %w\n%s", pkg, err, bytes.TrimSpace(out))
	}
	return os.Rename(tmp, dir)
}

func cacheDir() (string, error) {
	if dir := os.Getenv(EnvDir); dir != "" {
		return filepath.Abs(dir)
	}
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	return filepath.Join(dir, "etcdkit", "reference"), nil
}

// lock takes the lock file, waiting until ctx ends.
func lock(ctx context.Context, path string) (unlock func(), err error) {
	for {
		f, err := fileutil.TryLockFile(path, os.O_CREATE|os.O_RDWR, 0o644)
		if err == nil {
			return func() { _ = f.Close() }, nil
		}
		if !errors.Is(err, fileutil.ErrLocked) {
			return nil, err
		}
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-time.After(lockPoll):
		}
	}
}

func exe() string {
	if runtime.GOOS == "windows" {
		return ".exe"
	}
	return ""
}
