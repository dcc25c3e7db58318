package commands

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/dustin/go-humanize"

	"github.com/etcdkit/etcdkit/disk"
	"github.com/etcdkit/etcdkit/internal/output"
)

// printDisk shows a report in words.
func printDisk(w io.Writer, r *disk.Report, color bool) {
	fmt.Fprintf(w, "%s\n%s\n\n", r.Path, placeWords(r.Filesystem))
	if r.Fsync.Count > 0 {
		printSyncs(w, r, color)
	}
	if b := r.Bandwidth; b != nil {
		fmt.Fprintf(w, "bulk data in blocks of %s: write %s/s", humanize.IBytes(uint64(b.BlockBytes)), humanize.Bytes(uint64(b.WriteBytesPerSecond)))
		if b.ReadBytesPerSecond > 0 {
			fmt.Fprintf(w, ", read %s/s", humanize.Bytes(uint64(b.ReadBytesPerSecond)))
		}
		fmt.Fprint(w, "\n\n")
	}
	for _, n := range r.Neighbours {
		printNeighbour(w, n)
	}
	for _, warning := range r.Warnings {
		fmt.Fprintf(w, "warning: %s\n", warning.Text)
	}
	printVerdict(w, r)
	if r.Compared != nil {
		printComparison(w, r.Compared)
	}
}

// printComparison shows an earlier run beside this one.
func printComparison(w io.Writer, c *disk.Comparison) {
	fmt.Fprintf(w, "\ncompared with %s, %s:\n", c.Path, c.MeasuredAt.Format("2006-01-02 15:04:05 MST"))
	for _, change := range c.Changes {
		m, note := change.Metric, ""
		if change.Noise {
			note = ", no more than the rounds differ by"
		}
		fmt.Fprintf(w, "  %-6s %9s  then %9s  %+5.0f %%%s\n", m, m.Format(change.New), m.Format(change.Old), change.ChangePercent, note)
	}
	for _, d := range c.Differs {
		fmt.Fprintf(w, "  not alike: %s\n", d)
	}
}

// printNeighbour shows what a running etcd has measured itself.
func printNeighbour(w io.Writer, n disk.Neighbour) {
	fmt.Fprintf(w, "etcd: %s", n)
	if m := n.Metrics; m != nil {
		fmt.Fprint(w, "; its own numbers since it started:\n")
		fmt.Fprintf(w, "  fdatasync of the log     %s\n", m.WALFsync)
		if m.BackendCommit != nil {
			fmt.Fprintf(w, "  commit of the database   %s\n", m.BackendCommit)
		}
	}
	fmt.Fprint(w, "\n")
}

// placeWords says what is known of where the folder is.
func placeWords(fs disk.Filesystem) string {
	words := []string{fs.Type}
	if fs.Device != "" {
		words = append(words, "on "+fs.Device)
	}
	for _, l := range fs.Underneath {
		words = append(words, "underneath "+l.String())
	}
	if fs.Model != "" {
		words = append(words, "("+fs.Model+")")
	}
	if kind := fs.Kind(); kind != "" {
		words = append(words, kind)
	}
	if fs.Scheduler != "" {
		words = append(words, "scheduler "+fs.Scheduler)
	}
	if len(fs.MountOptions) > 0 {
		words = append(words, "mounted "+strings.Join(fs.MountOptions, ","))
	}
	if fs.TotalBytes > 0 {
		words = append(words, humanize.Bytes(uint64(fs.FreeBytes))+" free")
	}
	return strings.Join(words, ", ")
}

func printSyncs(w io.Writer, r *disk.Report, color bool) {
	fmt.Fprintf(w, "%s, %s:\n\n", syncWords(r), roundWords(r))
	f := r.Fsync
	for _, column := range []struct {
		name    string
		seconds float64
	}{
		{"min", f.MinSeconds},
		{"mean", f.MeanSeconds},
		{"p50", f.P50Seconds},
		{"p90", f.P90Seconds},
		{"p95", f.P95Seconds},
		{"p99", f.P99Seconds},
		{"p99.9", f.P999Seconds},
		{"max", f.MaxSeconds},
	} {
		fmt.Fprintf(w, "  %-6s %9s%s\n", column.name, disk.FormatSeconds(column.seconds), spreadWords(column.name, r.Rounds))
	}
	note := ""
	if r.Gentle {
		note = ", had the writes come without rests"
	}
	fmt.Fprintf(w, "  %-6s %9s   %s/s%s\n", "iops", disk.IOPS.Format(r.IOPS), humanize.Bytes(uint64(r.BytesPerSecond)), note)
	if c := r.Commit; c != nil && c.Count > 0 {
		fmt.Fprintf(w, "  the database's commits beside: p50 %s, p99 %s, max %s\n",
			disk.FormatSeconds(c.P50Seconds), disk.FormatSeconds(c.P99Seconds), disk.FormatSeconds(c.MaxSeconds))
	}
	fmt.Fprintln(w)
	printHistogram(w, r, color)
}

// syncWords says what was done again and again.
func syncWords(r *disk.Report) string {
	switch {
	case r.Pattern == disk.Etcd:
		return fmt.Sprintf("%s of the log of an etcd, clients %d, puts of %d bytes", r.Method, r.Jobs, r.Block)
	case r.Pattern == disk.WAL:
		return fmt.Sprintf("saves of etcd's log, %d of %d bytes and a %s each", r.Jobs, r.Block, r.Method)
	case r.Jobs > 1:
		return fmt.Sprintf("%s after each write of %d bytes, %d writers at once", r.Method, r.Block, r.Jobs)
	}
	return fmt.Sprintf("%s after each write of %d bytes", r.Method, r.Block)
}

func roundWords(r *disk.Report) string {
	if len(r.Rounds) == 1 {
		return fmt.Sprintf("one round of %d", r.Fsync.Count)
	}
	return fmt.Sprintf("the median of %d rounds of %d", len(r.Rounds), r.Fsync.Count)
}

// spreadWords says how far the rounds lie apart, for the numbers that verdicts
// rest on.
func spreadWords(name string, rounds []disk.Round) string {
	if name != "p99" || len(rounds) < 2 {
		return ""
	}
	low, high := math.Inf(1), 0.0
	for _, r := range rounds {
		low, high = min(low, r.Fsync.P99Seconds), max(high, r.Fsync.P99Seconds)
	}
	return fmt.Sprintf("   rounds from %s to %s", disk.FormatSeconds(low), disk.FormatSeconds(high))
}

// printHistogram draws the syncs of all rounds.
func printHistogram(w io.Writer, r *disk.Report, color bool) {
	rows := disk.Coarse(r.Histogram)
	var total, largest int64
	for _, row := range rows {
		total += row.Count
		largest = max(largest, row.Count)
	}
	const width = 50
	for _, row := range rows {
		fmt.Fprintf(w, "  to %7s  %6.2f %%  ", disk.FormatSeconds(row.ToSeconds), 100*float64(row.Count)/float64(total))
		bar := strings.Repeat("█", int(math.Ceil(float64(row.Count)/float64(largest)*width)))
		if color && row.FromSeconds >= 0.010 { // what hurts etcd
			output.Raw(w, "\x1b[31m")
			fmt.Fprint(w, bar)
			output.Raw(w, "\x1b[0m")
		} else {
			fmt.Fprint(w, bar)
		}
		fmt.Fprintln(w)
	}
	fmt.Fprintln(w)
}

func printVerdict(w io.Writer, r *disk.Report) {
	if r.Verdict == "" { // the error says why
		return
	}
	fmt.Fprintf(w, "verdict: %s\n", verdictWords(r))
	for _, c := range r.Checks {
		fmt.Fprintf(w, "  %-7s %s (%s)\n", map[bool]string{true: "ok", false: "not met"}[c.OK], c, c.Source)
	}
	for _, c := range r.Borderline {
		fmt.Fprintf(w, "  borderline: another round had %s; measure again, with more --rounds\n", c)
	}
	if r.Class == disk.Unknown {
		return
	}
	fmt.Fprintf(w, "class: %s\n", classWords(r.Class))
	for _, c := range r.Blockers {
		if !slices.Contains(r.Checks, c) { // those have been shown
			fmt.Fprintf(w, "  for %s: %s (%s)\n", r.Next, c, c.Source)
		}
	}
	fmt.Fprintf(w, "election timeout: at least %s, as far as the disk is concerned (derived)\n", disk.FormatSeconds(r.LeastElectionTimeout))
}

// verdictWords says the verdict, and what may make it worth less.
func verdictWords(r *disk.Report) string {
	words := string(r.Verdict)
	if r.Verdict != disk.OK {
		return words
	}
	if len(r.Borderline) > 0 {
		words += ", borderline"
	}
	var doubts []string
	for _, warning := range r.Warnings {
		if !slices.Contains(doubts, warning.Name) {
			doubts = append(doubts, warning.Name)
		}
	}
	if len(doubts) > 0 {
		words += ", with warnings (" + strings.Join(doubts, ", ") + ")"
	}
	return words
}

func classWords(c disk.Class) string {
	switch c {
	case disk.None:
		return "none, below etcd's minimum"
	case disk.Minimum:
		return "minimum, enough for trials and little else"
	}
	return string(c)
}

// diskTable shows every round.
func diskTable(r *disk.Report) (header []string, rows [][]string) {
	if r.Fsync.Count == 0 {
		header = []string{"round", "write/s", "read/s"}
		for i, round := range r.Rounds {
			rows = append(rows, []string{
				fmt.Sprint(i + 1),
				humanize.Bytes(uint64(round.Bandwidth.WriteBytesPerSecond)),
				humanize.Bytes(uint64(round.Bandwidth.ReadBytesPerSecond)),
			})
		}
		return header, rows
	}
	header = []string{"round", "p50", "p90", "p99", "p99.9", "max", "iops"}
	row := func(name string, f disk.Latency, iops float64) []string {
		return []string{
			name, disk.FormatSeconds(f.P50Seconds), disk.FormatSeconds(f.P90Seconds), disk.FormatSeconds(f.P99Seconds),
			disk.FormatSeconds(f.P999Seconds), disk.FormatSeconds(f.MaxSeconds), disk.IOPS.Format(iops),
		}
	}
	for i, round := range r.Rounds {
		rows = append(rows, row(fmt.Sprint(i+1), round.Fsync, round.IOPS))
	}
	return header, append(rows, row("quoted", r.Fsync, r.IOPS))
}
