package commands

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/etcdkit/etcdkit/commands/app"
	"github.com/etcdkit/etcdkit/internal/config"
	"github.com/etcdkit/etcdkit/internal/metricsfile"
	"github.com/etcdkit/etcdkit/snapshot"
)

// pingTimeout bounds the ping of a monitoring service.
const pingTimeout = 10 * time.Second

// telling tells a monitoring how a run went.
type telling struct {
	metricsFile string
	pingURL     string
}

func (t *telling) bind(fs *pflag.FlagSet) {
	fs.StringVar(&t.metricsFile, "metrics-file", "", "write the outcome for Prometheus' textfile collector, on failure too")
	fs.StringVar(&t.pingURL, "ping-url", "", "URL to call after success, with /fail after failure; better env:NAME or file:PATH, for it is a secret")
}

// outcome is what a save did.
type outcome struct {
	saved  *snapshot.Saved
	pruned *snapshot.Pruned
	target string
}

// The metrics that a failed run carries over from the last success.
const (
	metricLastSuccess = "etcdkit_backup_last_success_timestamp_seconds"
	metricSize        = "etcdkit_backup_size_bytes"
	metricStored      = "etcdkit_backup_stored_bytes"
	metricRevision    = "etcdkit_backup_revision"
	metricQuorum      = "etcdkit_backup_quorum"
)

// tell writes the metrics and pings. Its own failures are added to err, or for
// the ping warned of.
func (t *telling) tell(ctx context.Context, a *app.App, o outcome, start time.Time, err error) error {
	if t.metricsFile != "" {
		gauges := backupMetrics(o, start, a.Now(), err == nil)
		err = errors.Join(err, metricsfile.Write(t.metricsFile, gauges, metricLastSuccess, metricSize, metricStored, metricRevision, metricQuorum))
	}
	if t.pingURL != "" {
		if pingErr := t.ping(ctx, a, err == nil); pingErr != nil {
			a.Warn("ping: %v", pingErr)
		}
	}
	return err
}

func backupMetrics(o outcome, start, end time.Time, ok bool) []metricsfile.Gauge {
	success := 0.0
	if ok {
		success = 1
	}
	gauges := []metricsfile.Gauge{
		metricsfile.One("etcdkit_backup_success", "Whether the last run succeeded.", success),
		metricsfile.One("etcdkit_backup_last_run_timestamp_seconds", "When the last run ended.", float64(end.Unix())),
		metricsfile.One("etcdkit_backup_duration_seconds", "How long the last run took.", end.Sub(start).Seconds()),
	}
	if !ok || o.saved == nil || o.saved.Manifest == nil {
		return gauges
	}
	m, quorum := o.saved.Manifest, 0.0
	if m.Quorum {
		quorum = 1
	}
	return append(gauges,
		metricsfile.One(metricLastSuccess, "When the last successful run ended.", float64(end.Unix())),
		metricsfile.One(metricSize, "Size of the last backup's snapshot.", float64(m.SnapshotBytes)),
		metricsfile.One(metricStored, "Size of the last backup as it is stored.", float64(m.StoredBytes)),
		metricsfile.One(metricRevision, "Revision that the last backup holds at least.", float64(max(m.Revision, m.RevisionBefore))),
		metricsfile.One(metricQuorum, "Whether the last backup is of a member with quorum: without, it is none to rely on.", quorum))
}

// ping calls the monitoring's URL, which is a secret and never shown.
func (t *telling) ping(ctx context.Context, a *app.App, ok bool) error {
	target, err := config.Reference(t.pingURL, a.Env)
	if err != nil {
		return err
	}
	u, err := url.Parse(strings.TrimSpace(target))
	if err != nil {
		return errors.New("the URL is malformed")
	}
	if !ok {
		u = u.JoinPath("fail")
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), pingTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), http.NoBody)
	if err != nil {
		return errors.New("the URL is malformed")
	}
	resp, err := http.DefaultClient.Do(req)
	if failed, isURL := errors.AsType[*url.Error](err); isURL {
		return failed.Err
	}
	if err != nil {
		return err
	}
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, 1<<16))
	err = resp.Body.Close()
	if resp.StatusCode >= http.StatusBadRequest {
		return fmt.Errorf("the answer is %s", resp.Status)
	}
	return err
}
