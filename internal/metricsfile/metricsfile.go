// Package metricsfile writes gauges to a file for the textfile collector of
// Prometheus' node exporter: the whole file at once, so that a scrape never
// sees half of it.
package metricsfile

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/etcdkit/etcdkit/internal/regular"
	"github.com/etcdkit/etcdkit/internal/wholefile"
)

// Gauge is a metric with one sample or more.
type Gauge struct {
	Name, Help string
	Samples    []Sample
}

// Sample is a value under some labels.
type Sample struct {
	Labels map[string]string
	Value  float64
}

// One returns a gauge of one sample without labels.
func One(name, help string, value float64) Gauge {
	return Gauge{Name: name, Help: help, Samples: []Sample{{Value: value}}}
}

// maxSize bounds what is read of a file that is replaced.
const maxSize = 64 << 20

// Write replaces the file at path. Gauges named in keep that are not among
// those given are carried over from the file as it is: the time of the last
// success, when this run was none.
func Write(path string, gauges []Gauge, keep ...string) error {
	old, err := regular.ReadFile(path, maxSize)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("write metrics file: %w", err)
	}
	families := carried(old, gauges, keep)
	for _, g := range gauges {
		families = append(families, g.family())
	}
	slices.SortFunc(families, func(a, b *dto.MetricFamily) int { return cmp.Compare(a.GetName(), b.GetName()) })
	var text bytes.Buffer
	for _, f := range families {
		if _, err := expfmt.MetricFamilyToText(&text, f); err != nil {
			return fmt.Errorf("write metrics file: %w", err)
		}
	}
	if err := wholefile.Write(path, text.Bytes(), 0o644); err != nil { // the collector runs as another user
		return fmt.Errorf("write metrics file: %w", err)
	}
	return nil
}

// carried returns what is kept of the old file. A file that cannot be parsed
// has nothing to keep.
func carried(old []byte, gauges []Gauge, keep []string) []*dto.MetricFamily {
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(old))
	if err != nil {
		return nil
	}
	var kept []*dto.MetricFamily
	for _, name := range keep {
		written := slices.ContainsFunc(gauges, func(g Gauge) bool { return g.Name == name })
		if f := families[name]; f != nil && !written {
			kept = append(kept, f)
		}
	}
	return kept
}

func (g Gauge) family() *dto.MetricFamily {
	f := &dto.MetricFamily{Name: &g.Name, Help: &g.Help, Type: dto.MetricType_GAUGE.Enum()}
	for _, s := range g.Samples {
		m := &dto.Metric{Gauge: &dto.Gauge{Value: &s.Value}}
		for _, name := range slices.Sorted(maps.Keys(s.Labels)) {
			value := strings.ToValidUTF8(s.Labels[name], "\uFFFD") // the format is UTF-8, names from outside may not be
			m.Label = append(m.Label, &dto.LabelPair{Name: &name, Value: &value})
		}
		f.Metric = append(f.Metric, m)
	}
	return f
}
