package commands_test

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"

	"github.com/etcdkit/etcdkit/commands"
	"github.com/etcdkit/etcdkit/internal/cli"
	"github.com/etcdkit/etcdkit/internal/embedded"
	"github.com/etcdkit/etcdkit/internal/testing/etcdtest"
)

// A watched screen keeps what is written and calls full once it was cleared a third
// time, so after two reports.
type watched struct {
	bytes.Buffer
	full func()
}

func (s *watched) Write(p []byte) (int, error) {
	n, err := s.Buffer.Write(p)
	if bytes.Count(s.Bytes(), []byte("\x1b[2J")) == 3 {
		s.full()
	}
	return n, err
}

func TestHealthWatchLooksAgainOnAClearScreen(t *testing.T) {
	t.Parallel()
	endpoint := etcdtest.Start(t, embedded.Options{}).Endpoints()[0]
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	out, errs := &watched{full: cancel}, &bytes.Buffer{}
	env := &cli.Env{
		In: strings.NewReader(""), Out: out, Err: errs, OutTTY: true, Now: time.Now,
		Environ: []string{"HOME=" + t.TempDir(), "XDG_STATE_HOME=" + t.TempDir()},
	}
	code := commands.Main(ctx, []string{"etcdkit", "health", "--endpoints", endpoint, "--sample", "0", "--max-latency", "1m", "--watch", "1ms"}, env)
	if n := strings.Count(out.String(), "HEALTHY: cluster"); n < 2 || code == 0 { // one more may be on its way when the context ends
		t.Errorf("%d reports, exit code %d\n%s%s", n, code, out, errs)
	}
}
