package disk

import (
	"encoding/json"
	"fmt"
	"io"
	"strconv"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// fioPercentiles are those that fio lists.
func fioPercentiles() []float64 {
	return []float64{1, 5, 10, 20, 30, 40, 50, 60, 70, 80, 90, 95, 99, 99.5, 99.9, 99.95, 99.99}
}

// fioLatency is a distribution in nanoseconds, with fio's names.
type fioLatency struct {
	Min        int64            `json:"min"`
	Max        int64            `json:"max"`
	Mean       float64          `json:"mean"`
	Stddev     float64          `json:"stddev"`
	N          int64            `json:"N"`
	Percentile map[string]int64 `json:"percentile,omitempty"`
}

func fioLatencyOf(h *hdrhistogram.Histogram) fioLatency {
	if h.TotalCount() == 0 {
		return fioLatency{}
	}
	l := fioLatency{
		Min: h.Min(), Max: h.Max(), Mean: h.Mean(), Stddev: h.StdDev(), N: h.TotalCount(),
		Percentile: map[string]int64{},
	}
	for _, p := range fioPercentiles() {
		l.Percentile[strconv.FormatFloat(p, 'f', 6, 64)] = h.ValueAtPercentile(p)
	}
	return l
}

// fioDirection is what fio tells of reading or writing.
type fioDirection struct {
	Bytes    int64      `json:"io_bytes"`
	KBytes   int64      `json:"io_kbytes"`
	BWBytes  int64      `json:"bw_bytes"`
	BW       int64      `json:"bw"` // KiB in a second
	IOPS     float64    `json:"iops"`
	Runtime  int64      `json:"runtime"` // milliseconds
	TotalIOs int64      `json:"total_ios"`
	Slat     fioLatency `json:"slat_ns"`
	Clat     fioLatency `json:"clat_ns"`
	Lat      fioLatency `json:"lat_ns"`
}

// fioJob is one of fio's jobs.
type fioJob struct {
	Name    string            `json:"jobname"`
	Group   int               `json:"groupid"`
	Error   int               `json:"error"`
	Elapsed int64             `json:"elapsed"`
	Options map[string]string `json:"job options"`
	Read    fioDirection      `json:"read"`
	Write   fioDirection      `json:"write"`
	Trim    fioDirection      `json:"trim"`
	Sync    fioSync           `json:"sync"`
	Runtime int64             `json:"job_runtime"`
}

type fioSync struct {
	TotalIOs int64      `json:"total_ios"`
	Lat      fioLatency `json:"lat_ns"`
}

// fioReport is fio's answer to --output-format=json.
type fioReport struct {
	Version   string   `json:"fio version"`
	Timestamp int64    `json:"timestamp"`
	Millis    int64    `json:"timestamp_ms"`
	Time      string   `json:"time"`
	Jobs      []fioJob `json:"jobs"`
}

// WriteFio writes the quoted round in the form of fio --output-format=json, so
// that whatever reads fio's answers reads these.
func (r *Report) WriteFio(w io.Writer) error {
	q := r.quoted
	millis := int64(q.TookSeconds * 1e3)
	job := fioJob{
		Name: "etcdkit-disk-check", Elapsed: max(1, int64(q.TookSeconds)), Runtime: millis,
		Options: map[string]string{
			"name": "etcdkit-disk-check", "rw": r.fioMode(), "ioengine": "sync", "directory": r.Path,
			"bs": strconv.Itoa(r.Block), "size": strconv.FormatInt(r.Size, 10), "numjobs": strconv.Itoa(r.Jobs),
		},
		Write: fioDirectionOf(q.BytesPerSecond, r.Block, millis),
		Sync:  fioSync{TotalIOs: q.fioSync.N, Lat: q.fioSync},
	}
	job.Write.Clat, job.Write.Lat = q.fioWrite, q.fioWrite
	if r.Method == methodODSync { // fio has no syncs then, and neither have we
		job.Options["sync"] = "dsync"
		job.Sync, job.Write.Clat, job.Write.Lat = fioSync{}, q.fioSync, q.fioSync
	} else if r.Pattern.syncs() {
		job.Options["fdatasync"] = "1"
	}
	if b := q.Bandwidth; b != nil {
		job.Write = fioDirectionOf(b.WriteBytesPerSecond, b.BlockBytes, b.millis(b.WriteBytesPerSecond))
		job.Read = fioDirectionOf(b.ReadBytesPerSecond, b.BlockBytes, b.millis(b.ReadBytesPerSecond))
	}
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	err := enc.Encode(fioReport{
		Version: "etcdkit", Timestamp: r.MeasuredAt.Unix(), Millis: r.MeasuredAt.UnixMilli(),
		Time: r.MeasuredAt.Format("Mon Jan _2 15:04:05 2006"), Jobs: []fioJob{job},
	})
	if err != nil {
		return fmt.Errorf("print fio-json: %w", err)
	}
	return nil
}

func (r *Report) fioMode() string {
	if r.Pattern == Random {
		return "randwrite"
	}
	return "write"
}

// millis is how long the data takes at a rate.
func (b *Bandwidth) millis(bytesPerSecond float64) int64 {
	if bytesPerSecond <= 0 {
		return 0
	}
	return int64(1e3 * float64(b.SizeBytes) / bytesPerSecond)
}

func fioDirectionOf(bytesPerSecond float64, block int, millis int64) fioDirection {
	bytes := int64(bytesPerSecond * float64(millis) / 1e3)
	return fioDirection{
		Bytes: bytes, KBytes: bytes >> 10, BWBytes: int64(bytesPerSecond), BW: int64(bytesPerSecond) >> 10,
		IOPS: bytesPerSecond / float64(block), Runtime: millis, TotalIOs: bytes / int64(block),
	}
}
