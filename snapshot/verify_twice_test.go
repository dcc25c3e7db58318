package snapshot_test

import (
	"context"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/etcdkit/etcdkit/internal/store"
	"github.com/etcdkit/etcdkit/snapshot"
)

// flaky is a folder whose data reads wrongly so many times.
type flaky struct {
	*store.Folder
	times int
}

func (s *flaky) Get(ctx context.Context, key string) (io.ReadCloser, int64, error) {
	body, size, err := s.Folder.Get(ctx, key)
	if err != nil || !strings.HasSuffix(key, ".db") || s.times == 0 {
		return body, size, err
	}
	s.times--
	return struct {
		io.Reader
		io.Closer
	}{io.MultiReader(strings.NewReader("x"), body), body}, size, nil
}

func TestAFaultThatPassesBrandsNoBackup(t *testing.T) {
	for times, want := range map[int]snapshot.Result{1: snapshot.ResultOK, 2: snapshot.ResultBad} {
		repo, _ := saves(t, 1)
		b := only(t, repo)
		v, err := snapshot.Verify(t.Context(), &flaky{repo, times}, b, snapshot.VerifyOptions{Now: time.Now})
		if err != nil || v.Result != want {
			t.Errorf("read wrongly %d times: %+v, %v; want %s", times, v, err, want)
		}
		if good := only(t, repo).Good(); good != (want == snapshot.ResultOK) {
			t.Errorf("read wrongly %d times: good is %t", times, good)
		}
	}
}
