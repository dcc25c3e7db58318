package health

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/etcdkit/etcdkit/internal/hint"
)

const pageBefore = `# TYPE etcd_disk_wal_fsync_duration_seconds histogram
etcd_disk_wal_fsync_duration_seconds_bucket{le="0.001"} 90
etcd_disk_wal_fsync_duration_seconds_bucket{le="0.002"} 100
etcd_disk_wal_fsync_duration_seconds_bucket{le="+Inf"} 100
etcd_disk_wal_fsync_duration_seconds_sum 0.1
etcd_disk_wal_fsync_duration_seconds_count 100
# TYPE etcd_server_leader_changes_seen_total counter
etcd_server_leader_changes_seen_total 3
# TYPE etcd_server_quota_backend_bytes gauge
etcd_server_quota_backend_bytes 2.147483648e+09
# TYPE etcd_network_peer_round_trip_time_seconds histogram
etcd_network_peer_round_trip_time_seconds_bucket{To="a1",le="0.1"} 4
etcd_network_peer_round_trip_time_seconds_bucket{To="a1",le="+Inf"} 4
etcd_network_peer_round_trip_time_seconds_sum{To="a1"} 0.1
etcd_network_peer_round_trip_time_seconds_count{To="a1"} 4
# TYPE grpc_server_started_total counter
grpc_server_started_total{grpc_method="Snapshot",grpc_service="etcdserverpb.Maintenance",grpc_type="server_stream"} 5
grpc_server_started_total{grpc_method="Range",grpc_service="etcdserverpb.KV",grpc_type="unary"} 50
# TYPE grpc_server_handled_total counter
grpc_server_handled_total{grpc_code="OK",grpc_method="Snapshot",grpc_service="etcdserverpb.Maintenance",grpc_type="server_stream"} 3
grpc_server_handled_total{grpc_code="Canceled",grpc_method="Snapshot",grpc_service="etcdserverpb.Maintenance",grpc_type="server_stream"} 1
`

func page(t *testing.T, text string) Samples {
	t.Helper()
	samples, err := ParseMetrics(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return samples
}

func TestMeasureTellsTheSampleFromTheTotal(t *testing.T) {
	after := strings.NewReplacer(
		`le="0.002"} 100`, `le="0.002"} 101`, `le="+Inf"} 100`, `le="+Inf"} 110`, `seconds_count 100`, `seconds_count 110`,
		"seen_total 3", "seen_total 4",
	).Replace(pageBefore)
	got := measure(page(t, pageBefore), page(t, after), time.Second)
	worst, total, trip := 0.002, 0.002, 0.099
	want := &Metrics{
		SampleSeconds:  1,
		WALFsync:       &Timing{SampleP99Seconds: &worst, SampleCount: 10, TotalP99Seconds: &total, TotalCount: 110},
		PeerRoundTrips: []Trip{{"a1", Timing{TotalP99Seconds: &trip, TotalCount: 4}}},
		LeaderChanges:  Count{Sample: 1, Total: 4},
		QuotaBytes:     2 << 30,
		Snapshots:      1,
	}
	near := cmp.Comparer(func(a, b float64) bool { return math.Abs(a-b) < 1e-9 })
	if diff := cmp.Diff(want, got, near); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestAServerThatStartedAgainHasNoNegativeSample(t *testing.T) {
	after := strings.NewReplacer(`} 90`, `} 9`, `} 100`, `} 10`, `seconds_count 100`, `seconds_count 10`, "seen_total 3", "seen_total 1").Replace(pageBefore)
	got := measure(page(t, pageBefore), page(t, after), time.Second)
	if got.WALFsync.SampleCount != 10 || *got.WALFsync.SampleP99Seconds > 0.002 || got.LeaderChanges.Sample != 0 {
		t.Errorf("%+v, changes %+v; want the ten events since the start", got.WALFsync, got.LeaderChanges)
	}
}

func TestMetricsPage(t *testing.T) {
	pages := []string{"http://b:2381/metrics", "http://[::1]:2381"}
	for url, want := range map[string]string{
		"https://a:2379":         "https://a:2379/metrics",
		"a:2379":                 "http://a:2379/metrics",
		"https://b:2379":         "http://b:2381/metrics",
		"https://[::1]:2379":     "http://[::1]:2381/metrics",
		"unix://localhost:1.000": "",
	} {
		got, err := metricsPage(url, pages)
		if got != want || (err != nil) != (want == "") {
			t.Errorf("%s: got %q, %v; want %q", url, got, err, want)
		}
	}
}

// Members that share a host each have a page of their own: none is shown the
// page of another.
func TestMetricsPagesOfMembersOnOneHost(t *testing.T) {
	named := []string{"h:2379=http://h:2381", "H:22379=http://h:22381/m"}
	for url, want := range map[string]string{"https://h:2379": "http://h:2381/metrics", "http://h:22379": "http://h:22381/m", "http://h:32379": "http://h:32379/metrics"} {
		if got, err := metricsPage(url, named); got != want || err != nil {
			t.Errorf("%s: got %q, %v; want %q", url, got, err, want)
		}
	}
	if got, err := metricsPage("http://h:2379", []string{"http://h:2381", "http://h:22381"}); err == nil || hint.Of(err) != "name it as --metrics-urls h:2379=PAGE" {
		t.Errorf("got %q, %v; want that it is not known which page", got, err)
	}
	if got, err := metricsPage("http://h:2379", []string{"http://h:22379/metrics", "http://h:2379/metrics"}); got != "http://h:2379/metrics" || err != nil {
		t.Errorf("got %q, %v; want its own port", got, err)
	}
}

func FuzzParseMetrics(f *testing.F) {
	f.Add(pageBefore)
	f.Add("etcd_disk_wal_fsync_duration_seconds_bucket{le=\"NaN\"} 1\n")
	f.Add("# TYPE etcd_server_quota_backend_bytes histogram\netcd_server_quota_backend_bytes_count 1\n")
	f.Fuzz(func(_ *testing.T, text string) {
		samples, err := ParseMetrics(strings.NewReader(text))
		if err == nil {
			measure(samples, samples, time.Second)
		}
	})
}

func TestParseAlarm(t *testing.T) {
	for text, want := range map[string]Alarm{
		"memberID:10501334649042878790 alarm:NOSPACE ": {"NOSPACE", 10501334649042878790},
		"memberID:7  alarm:CORRUPT":                    {"CORRUPT", 7},
		"alarm:NOSPACE":                                {"NOSPACE", 0},
		"etcdserver: no leader":                        {},
		"":                                             {},
	} {
		got, ok := parseAlarm(text)
		if got != want || ok != (want != Alarm{}) {
			t.Errorf("%q: got %+v, %v; want %+v", text, got, ok, want)
		}
	}
}

func FuzzParseAlarm(f *testing.F) {
	f.Add("memberID:10501334649042878790 alarm:NOSPACE ")
	f.Fuzz(func(t *testing.T, text string) {
		if alarm, ok := parseAlarm(text); ok && alarm.Kind == "" {
			t.Errorf("%q: an alarm without a kind", text)
		}
	})
}
