package reference_test

import (
	"context"
	"debug/buildinfo"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/etcdkit/etcdkit/internal/testing/reference"
)

func TestEachProgramIsTheVersionItIsNamedAfter(t *testing.T) {
	for _, p := range reference.All() {
		t.Run(string(p), func(t *testing.T) {
			info, err := buildinfo.ReadFile(reference.Path(t, p))
			if err != nil {
				t.Fatal(err)
			}
			made := slices.ContainsFunc(append(info.Deps, &info.Main), func(m *debug.Module) bool {
				return strings.HasPrefix(info.Path, m.Path) && m.Version == "v"+p.Version()
			})
			if !made {
				t.Errorf("built from %s of %s, want version %s", info.Path, info.Main.Version, p.Version())
			}
		})
	}
}

func TestManyWhoAskAtOnceGetOneBuild(t *testing.T) {
	t.Setenv(reference.EnvDir, t.TempDir())
	var wg sync.WaitGroup
	paths := make([]string, 4)
	for i := range paths {
		wg.Go(func() {
			var err error
			if paths[i], err = reference.Build(t.Context(), reference.Etcdctl); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	for _, path := range paths[1:] {
		if path != paths[0] {
			t.Errorf("paths %q, want one", paths)
		}
	}
	leftovers, _ := filepath.Glob(filepath.Join(filepath.Dir(filepath.Dir(paths[0])), "*.tmp"))
	if len(leftovers) != 0 {
		t.Errorf("left over: %q", leftovers)
	}
}

func TestAnUnknownProgramIsAnErrorThatNamesTheKnown(t *testing.T) {
	_, err := reference.Build(context.Background(), "etcd-0.4.6")
	if err == nil || !strings.Contains(err.Error(), string(reference.Etcd37)) {
		t.Errorf("got %v, want the programs that there are", err)
	}
}
