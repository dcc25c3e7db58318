package disk

import (
	"embed"
	"fmt"
	"html/template"
	"io"
)

//go:embed page.html
var page embed.FS

// pageData is what page.html shows.
type pageData struct {
	R         *Report
	Place     []fact
	Numbers   []fact
	Histogram *histogramChart
	Series    *seriesChart
	W, H      float64
}

type fact struct{ Name, Value string }

// WriteHTML writes the report as one page that needs nothing else, to be
// attached to a ticket.
func (r *Report) WriteHTML(w io.Writer) error {
	t, err := template.New("page.html").Funcs(template.FuncMap{
		"seconds": FormatSeconds,
		"rate":    func(v float64) string { return WriteRate.Format(v) },
		"count":   func(v float64) string { return IOPS.Format(v) },
		"inc":     func(i int) int { return i + 1 },
	}).ParseFS(page, "page.html")
	if err != nil {
		return fmt.Errorf("write report: %w", err)
	}
	data := pageData{
		R: r, Place: r.placeFacts(), Numbers: r.numberFacts(),
		Histogram: r.histogramChart(), Series: r.seriesChart(), W: chartWidth, H: chartHeight,
	}
	if err := t.Execute(w, data); err != nil {
		return fmt.Errorf("write report: %w", err)
	}
	return nil
}

func (r *Report) placeFacts() []fact {
	fs := r.Filesystem
	facts := []fact{{"Folder", r.Path}, {"Filesystem", fs.Type}}
	add := func(name, value string) {
		if value != "" {
			facts = append(facts, fact{name, value})
		}
	}
	add("Mount point", fs.MountPoint)
	add("Device", fs.Device)
	add("Model", fs.Model)
	add("Kind", fs.Kind())
	add("Scheduler", fs.Scheduler)
	add("Write cache", fs.WriteCache)
	if fs.TotalBytes > 0 {
		add("Free", fmt.Sprintf("%.1f of %.1f GB", float64(fs.FreeBytes)/1e9, float64(fs.TotalBytes)/1e9))
	}
	add("Pattern", fmt.Sprintf("%s, %d bytes, %s, %d rounds", r.Pattern, r.Block, r.Method, len(r.Rounds)))
	add("Measured", r.MeasuredAt.Format("2006-01-02 15:04:05 UTC"))
	return facts
}

func (r *Report) numberFacts() []fact {
	var facts []fact
	if f := r.Fsync; f.Count > 0 {
		for _, n := range []struct {
			name  string
			value float64
		}{{"p50", f.P50Seconds}, {"p90", f.P90Seconds}, {"p99", f.P99Seconds}, {"p99.9", f.P999Seconds}, {"max", f.MaxSeconds}, {"mean", f.MeanSeconds}} {
			facts = append(facts, fact{n.name, FormatSeconds(n.value)})
		}
		facts = append(facts, fact{"IOPS", IOPS.Format(r.IOPS)})
	}
	if b := r.Bandwidth; b != nil {
		facts = append(facts, fact{"write", WriteRate.Format(b.WriteBytesPerSecond)})
		if b.ReadBytesPerSecond > 0 {
			facts = append(facts, fact{"read", ReadRate.Format(b.ReadBytesPerSecond)})
		}
	}
	return facts
}
