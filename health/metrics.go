package health

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/etcdkit/etcdkit/internal/hint"
)

// Names of the metrics that are read. Those of slow applies and in-flight
// defragmentations exist since etcd 3.4 and 3.5.
const (
	metricFsync     = "etcd_disk_wal_fsync_duration_seconds"
	metricCommit    = "etcd_disk_backend_commit_duration_seconds"
	metricPeerRTT   = "etcd_network_peer_round_trip_time_seconds"
	metricElections = "etcd_server_leader_changes_seen_total"
	metricSlow      = "etcd_server_slow_apply_total"
	metricFailed    = "etcd_server_proposals_failed_total"
	metricQuota     = "etcd_server_quota_backend_bytes"
	metricDefrag    = "etcd_disk_defrag_inflight"
	metricStarted   = "grpc_server_started_total"
	metricHandled   = "grpc_server_handled_total"
)

// maxMetricsBytes bounds a metrics page. Real ones stay below 1 MiB.
const maxMetricsBytes = 16 << 20

// Samples is a metrics page, by name.
type Samples map[string]*dto.MetricFamily

// ParseMetrics reads a metrics page in Prometheus' text format.
func ParseMetrics(r io.Reader) (Samples, error) {
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(io.LimitReader(r, maxMetricsBytes))
	if err != nil {
		return nil, fmt.Errorf("parse metrics: %w", err)
	}
	return families, nil
}

// Scraper returns a Doors.Scrape that reads pages over HTTP. The page of a
// member is /metrics at its client URL, unless pages names another for the
// URL's host and port or for its host alone.
func Scraper(client *http.Client, pages []string) func(context.Context, string) (Samples, error) {
	return func(ctx context.Context, clientURL string) (Samples, error) {
		page, err := metricsPage(clientURL, pages)
		if err != nil {
			return nil, err
		}
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, page, http.NoBody)
		if err != nil {
			return nil, fmt.Errorf("scrape metrics: %w", err)
		}
		resp, err := client.Do(req)
		if err != nil {
			return nil, fmt.Errorf("scrape metrics: %w", err)
		}
		defer resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			return nil, fmt.Errorf("scrape metrics: %s: %s", req.URL.Redacted(), resp.Status)
		}
		return ParseMetrics(resp.Body)
	}
}

// metricsPage finds the page that belongs to a client URL.
func metricsPage(clientURL string, pages []string) (string, error) {
	if strings.HasPrefix(clientURL, "unix") {
		return "", fmt.Errorf("scrape metrics: %s is a socket", clientURL)
	}
	if !strings.Contains(clientURL, "://") {
		clientURL = "http://" + clientURL
	}
	u, err := url.Parse(clientURL)
	if err != nil {
		return "", fmt.Errorf("scrape metrics: %w", err)
	}
	page, err := namedPage(u, pages)
	if err != nil || page != "" {
		return page, err
	}
	u.Path = "/metrics"
	return u.String(), nil
}

// namedPage returns the page that was named for a client URL: for its host and
// port as HOST:PORT=PAGE, else for its host, if only one was.
func namedPage(client *url.URL, pages []string) (string, error) {
	var forHost []string
	for _, page := range pages {
		host := ""
		if from, to, ok := strings.Cut(page, "="); ok && !strings.Contains(from, "/") {
			host, page = from, to
		}
		p, err := url.Parse(page)
		if err != nil { // which quotes what may hold a password
			return "", errors.New("scrape metrics: a page that was named is no URL")
		}
		if p.Path == "" || p.Path == "/" {
			p.Path = "/metrics"
		}
		switch {
		case host != "" && strings.EqualFold(host, client.Host), host == "" && p.Host == client.Host:
			return p.String(), nil
		case host == "" && p.Hostname() == client.Hostname():
			forHost = append(forHost, p.String())
		}
	}
	switch len(forHost) {
	case 0:
		return "", nil
	case 1:
		return forHost[0], nil
	}
	return "", hint.With(fmt.Errorf("scrape metrics: %d pages are named for %s, and which is the page of the member at %s is not known", len(forHost), client.Hostname(), client.Host),
		"name it as --metrics-urls %s=PAGE", client.Host)
}

// Defragmenting reports whether the member is being defragmented.
func (s Samples) Defragmenting() bool { return s.value(metricDefrag) > 0 }

// Metrics is what two scrapes of a member show.
type Metrics struct {
	SampleSeconds   float64 `json:"sampleSeconds"`
	WALFsync        *Timing `json:"walFsync"`
	BackendCommit   *Timing `json:"backendCommit"`
	PeerRoundTrips  []Trip  `json:"peerRoundTrips"`
	LeaderChanges   Count   `json:"leaderChanges"`
	SlowApplies     Count   `json:"slowApplies"`
	FailedProposals Count   `json:"failedProposals"`
	QuotaBytes      int64   `json:"quotaBytes"` // 0 where not told
	Defragmenting   bool    `json:"defragmenting"`
	Snapshots       int     `json:"snapshotsServed"` // streams open now
}

// Count is how often something happened.
type Count struct {
	Sample float64 `json:"sample"` // between the scrapes
	Total  float64 `json:"total"`  // since the server started
}

// Timing is a 99th percentile in the sample and since the server started,
// each with the number of events behind it. A nil percentile had none.
type Timing struct {
	SampleP99Seconds *float64 `json:"sampleP99Seconds"`
	SampleCount      uint64   `json:"sampleCount"`
	TotalP99Seconds  *float64 `json:"totalP99Seconds"`
	TotalCount       uint64   `json:"totalCount"`
}

// Trip is the round trip time to a peer.
type Trip struct {
	To string `json:"to"` // the peer's id
	Timing
}

// scrape reads the member's metrics twice. A page that is not an etcd server's
// is returned beside the error.
func (p *probe) scrape(ctx context.Context, doors Doors, opts Options) (*Metrics, error) {
	if doors.Scrape == nil {
		return nil, errors.New("there is no way to read them")
	}
	once := func() (Samples, error) {
		ctx, cancel := context.WithTimeout(ctx, opts.timeout())
		defer cancel()
		return doors.Scrape(ctx, p.Endpoint)
	}
	first, err := once()
	if err != nil {
		return nil, err
	}
	second, start := first, time.Now()
	if opts.Sample > 0 {
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-time.After(opts.Sample):
		}
		if second, err = once(); err != nil {
			return nil, err
		}
	}
	m := measure(first, second, time.Since(start))
	if m.WALFsync == nil {
		return m, errors.New("the page has no " + metricFsync + ": not an etcd server's")
	}
	return m, nil
}

// measure compares two scrapes.
func measure(first, second Samples, apart time.Duration) *Metrics {
	m := &Metrics{
		SampleSeconds:   apart.Seconds(),
		WALFsync:        timing(first.histogram(metricFsync, ""), second.histogram(metricFsync, "")),
		BackendCommit:   timing(first.histogram(metricCommit, ""), second.histogram(metricCommit, "")),
		PeerRoundTrips:  []Trip{},
		LeaderChanges:   count(first, second, metricElections),
		SlowApplies:     count(first, second, metricSlow),
		FailedProposals: count(first, second, metricFailed),
		QuotaBytes:      int64(second.value(metricQuota)),
		Defragmenting:   second.Defragmenting(),
		Snapshots:       second.snapshots(),
	}
	for _, peer := range second.peers() {
		if t := timing(first.histogram(metricPeerRTT, peer), second.histogram(metricPeerRTT, peer)); t != nil {
			m.PeerRoundTrips = append(m.PeerRoundTrips, Trip{peer, *t})
		}
	}
	return m
}

func count(first, second Samples, name string) Count {
	total := second.value(name)
	return Count{Sample: max(0, total-first.value(name)), Total: total}
}

// value sums the family's counters or gauges.
func (s Samples) value(name string) (sum float64) {
	for _, m := range s[name].GetMetric() {
		sum += m.GetCounter().GetValue() + m.GetGauge().GetValue() + m.GetUntyped().GetValue()
	}
	return sum
}

func label(m *dto.Metric, name string) string {
	for _, l := range m.GetLabel() {
		if l.GetName() == name {
			return l.GetValue()
		}
	}
	return ""
}

// histogram returns the family's histogram, or the one of a peer.
func (s Samples) histogram(name, peer string) *dto.Histogram {
	for _, m := range s[name].GetMetric() {
		if peer == "" || label(m, "To") == peer {
			return m.GetHistogram()
		}
	}
	return nil
}

func (s Samples) peers() []string {
	peers := map[string]bool{}
	for _, m := range s[metricPeerRTT].GetMetric() {
		if to := label(m, "To"); to != "" {
			peers[to] = true
		}
	}
	return slices.Sorted(maps.Keys(peers))
}

// snapshots is how many snapshot streams are open: started and not ended.
func (s Samples) snapshots() int {
	open := 0.0
	for name, sign := range map[string]float64{metricStarted: 1, metricHandled: -1} {
		for _, m := range s[name].GetMetric() {
			if label(m, "grpc_method") == "Snapshot" && strings.HasSuffix(label(m, "grpc_service"), "Maintenance") {
				open += sign * m.GetCounter().GetValue()
			}
		}
	}
	return max(0, int(open))
}

func timing(first, second *dto.Histogram) *Timing {
	if second == nil {
		return nil
	}
	total := cumulative(second)
	sample := maps.Clone(total)
	for bound, n := range cumulative(first) {
		if n > sample[bound] { // the server started again in between
			sample = maps.Clone(total)
			break
		}
		sample[bound] -= n
	}
	t := &Timing{TotalCount: second.GetSampleCount()}
	t.TotalP99Seconds = quantile(0.99, total, t.TotalCount)
	t.SampleCount = t.TotalCount
	if n := first.GetSampleCount(); n <= t.TotalCount {
		t.SampleCount -= n
	}
	t.SampleP99Seconds = quantile(0.99, sample, t.SampleCount)
	return t
}

func cumulative(h *dto.Histogram) map[float64]uint64 {
	buckets := map[float64]uint64{}
	for _, b := range h.GetBucket() {
		buckets[b.GetUpperBound()] = b.GetCumulativeCount()
	}
	return buckets
}

// quantile interpolates inside the bucket that holds q, as PromQL does. What
// lies beyond the last finite bound is told as that bound.
func quantile(q float64, buckets map[float64]uint64, n uint64) *float64 {
	if n == 0 {
		return nil
	}
	rank := q * float64(n)
	lower, below := 0.0, uint64(0)
	for _, upper := range slices.Sorted(maps.Keys(buckets)) {
		c := buckets[upper]
		if upper > 1e9 { // +Inf
			break
		}
		if float64(c) >= rank && c > below {
			v := lower + (upper-lower)*(rank-float64(below))/float64(c-below)
			return &v
		}
		lower, below = upper, c
	}
	return &lower
}
