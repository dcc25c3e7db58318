package disk

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"math"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"golang.org/x/net/html"
)

// sample is a report of three made-up rounds.
func sample(t testing.TB) *Report {
	t.Helper()
	opts, err := Options{Dir: "/var/lib/<etcd>"}.complete()
	if err != nil {
		t.Fatal(err)
	}
	r := newReport(opts, Filesystem{Type: "ext4", Device: "/dev/sda1", MountOptions: []string{"rw"}, FreeBytes: 5e9, TotalBytes: 9e9})
	all := newHistogram()
	for i := range 3 {
		rec := newRecorder(time.Minute)
		rec.start = r.MeasuredAt
		at := rec.start
		for n := range 1000 {
			took := time.Duration(200+n%50+100*i) * time.Microsecond
			if n%100 == 99 {
				took = 15 * time.Millisecond
			}
			end := at.Add(5*time.Microsecond + took)
			rec.add(at, at.Add(5*time.Microsecond), end)
			at = end
		}
		round, sync := merge([]*recorder{rec}, fioBlock, false)
		round.Complete = true
		r.Rounds = append(r.Rounds, round)
		all.Merge(sync)
	}
	r.quote(median(r.Rounds), all)
	r.Bandwidth = &Bandwidth{SizeBytes: 1 << 30, BlockBytes: 1 << 20, WriteBytesPerSecond: 110e6, ReadBytesPerSecond: 500e6}
	if err := r.judge(nil); err != nil && !errors.Is(err, ErrTooSlow) {
		t.Fatal(err)
	}
	return r
}

// TestFioReadersReadUs asks for what jq lines and dashboards ask fio for, with
// fio's names and units (openshift/assisted-installer-agent#119).
func TestFioReadersReadUs(t *testing.T) {
	var b bytes.Buffer
	r := sample(t)
	if err := r.WriteFio(&b); err != nil {
		t.Fatal(err)
	}
	var got any
	if err := json.Unmarshal(b.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	at := func(path string) any {
		v := got
		for name := range strings.SplitSeq(path, "/") {
			if list, ok := v.([]any); ok {
				v = list[0]
			}
			v = v.(map[string]any)[name]
		}
		return v
	}
	for path, want := range map[string]float64{
		"jobs/sync/lat_ns/percentile/99.000000": r.Fsync.P99Seconds * 1e9,
		"jobs/sync/lat_ns/percentile/50.000000": r.Fsync.P50Seconds * 1e9,
		"jobs/sync/lat_ns/percentile/99.900000": r.Fsync.P999Seconds * 1e9,
		"jobs/sync/lat_ns/mean":                 r.Fsync.MeanSeconds * 1e9,
		"jobs/sync/lat_ns/N":                    1000,
		"jobs/sync/total_ios":                   1000,
		"jobs/write/iops":                       r.IOPS,
		"jobs/write/bw_bytes":                   r.BytesPerSecond,
		"jobs/write/bw":                         r.BytesPerSecond / 1024,
		"jobs/write/io_bytes":                   1000 * fioBlock,
		"jobs/write/clat_ns/mean":               5000,
		"jobs/read/iops":                        0,
	} {
		if v, ok := at(path).(float64); !ok || math.Abs(v-want) > 0.01*want+1e-9 {
			t.Errorf("%s is %v, want %v", path, at(path), want)
		}
	}
	for path, want := range map[string]string{"jobs/job options/rw": "write", "jobs/job options/bs": "2300", "jobs/job options/fdatasync": "1"} {
		if at(path) != want {
			t.Errorf("%s is %v, want %s", path, at(path), want)
		}
	}
}

func TestThePageNeedsNothingElse(t *testing.T) {
	r := sample(t)
	r.Warnings = []Warning{{Name: "overlay", Text: "an overlay & <more>"}}
	r.Neighbours = []Neighbour{{PID: 7, Data: "/d/member/snap/db", Metrics: &EtcdMetrics{WALFsync: &Durations{Count: 1, P99ToSeconds: 0.001}}}}
	r.CompareWith(sample(t))
	var b bytes.Buffer
	if err := r.WriteHTML(&b); err != nil {
		t.Fatal(err)
	}
	elements := map[string]int{}
	for z := html.NewTokenizer(bytes.NewReader(b.Bytes())); z.Next() != html.ErrorToken; {
		token := z.Token()
		if token.Type == html.StartTagToken || token.Type == html.SelfClosingTagToken {
			elements[token.Data]++
		}
		for _, a := range token.Attr {
			if a.Key == "src" || a.Key == "href" {
				t.Errorf("the page refers to %s", a.Val)
			}
		}
	}
	if elements["svg"] != 2 || elements["polyline"] != 3 || elements["rect"] < 5 || elements["circle"] < 3 {
		t.Errorf("got %v, want two charts, the second with a line for each of three rounds", elements)
	}
	for _, text := range []string{"Verdict: ok", "&lt;etcd&gt;", "an overlay &amp; &lt;more&gt;", "fdatasync of the log: mean", "Compared with"} {
		if !strings.Contains(b.String(), text) {
			t.Errorf("no %q on the page", text)
		}
	}
	if strings.Contains(b.String(), "ZgotmplZ") || strings.Contains(b.String(), "NaN") || !utf8.Valid(b.Bytes()) {
		t.Error("the page has numbers or text that a browser cannot use")
	}
}

func TestThePageOfBulkData(t *testing.T) {
	r := sample(t)
	r.Pattern, r.Fsync, r.Histogram = Sequential, Latency{}, nil
	r.Rounds = []Round{{BytesPerSecond: 1e8, Bandwidth: r.Bandwidth}}
	if err := r.WriteHTML(io.Discard); err != nil {
		t.Error(err)
	}
}

func TestCompareWith(t *testing.T) {
	old, now := sample(t), sample(t)
	for i := range now.Rounds {
		now.Rounds[i].Fsync.P50Seconds *= 10
	}
	now.Fsync.P50Seconds *= 10
	now.Jobs = 4
	now.CompareWith(old)
	changes := map[Metric]Change{}
	for _, c := range now.Compared.Changes {
		changes[c.Metric] = c
	}
	if c := changes[P50]; math.Abs(c.ChangePercent-900) > 1e-6 || c.Noise {
		t.Errorf("p50: got %+v, want ten times as much and no noise", c)
	}
	if c := changes[P90]; c.ChangePercent != 0 || !c.Noise {
		t.Errorf("p90: got %+v, want no change", c)
	}
	if d := now.Compared.Differs; len(d) != 1 || d[0] != "jobs was 1 and is 4" {
		t.Errorf("got %q, want that the jobs differ", d)
	}
}

func TestAReportReadsBack(t *testing.T) {
	r := sample(t)
	b, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	back, err := ReadReport(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	again, err := json.Marshal(back)
	if err != nil || !bytes.Equal(b, again) {
		t.Errorf("%v, a report changes when it is read and written", err)
	}
	for name, text := range map[string]string{"nothing": "", "no JSON": "p99 3 ms", "other JSON": `{"path": "/x"}`, "a list": "[]"} {
		if _, err := ReadReport(strings.NewReader(text)); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func FuzzReadReport(f *testing.F) {
	b, err := json.Marshal(sample(f))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Add([]byte(`{"path":"/","pattern":"fio","rounds":[{}],"histogram":[{"count":1}]}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		old, err := ReadReport(bytes.NewReader(b))
		if err != nil {
			return
		}
		r := sample(t)
		r.CompareWith(old)
		if err := r.WriteHTML(io.Discard); err != nil {
			t.Error(err)
		}
		if _, err := json.Marshal(r); err != nil {
			t.Error(err)
		}
	})
}
