package ctl

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"time"

	"github.com/cheggaaa/pb/v3"
	"github.com/spf13/cobra"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/pkg/v3/report"

	"github.com/etcdkit/etcdkit/commands/app"
	"github.com/etcdkit/etcdkit/internal/cli"
	"github.com/etcdkit/etcdkit/internal/load"
	"github.com/etcdkit/etcdkit/internal/output"
)

// What the check asks of a cluster.
const (
	perfDuration  = time.Minute
	perfShare     = 0.9 // of the throughput asked for
	perfSlowest   = 0.5 // seconds
	perfStddev    = 0.1 // seconds, upstream's
	perfRMS       = 0.1 // seconds, natively in its place
	perfKeySize   = 256
	perfValueSize = 1024
)

const checkPerfHelp = `Writes at the rate of a workload for a minute: s(mall) is 150 writes a second by
50 clients, m(edium) 1000 by 200, l(arge) 8000 by 500, xl(arge) 15000 by 1000. The
cluster passes with more than 90% of that rate, no failed write, a slowest write
of at most 0.5 s, and a root mean square of all writes of at most 0.1 s. It is a
load on the cluster; "etcdkit disk check" measures a disk without one.

Afterwards, also when it is interrupted, the keys are deleted, compacted away, and
the members defragmented, followers first: the database is as large as before.

  etcdkit check perf --load m

Exit codes: 0 passed, 1 failed to run or to clean up, 2 wrong usage, 3 too slow.`

func newCheckPerfCmd(t *tree) *cobra.Command {
	var opts checkOptions
	cmd := &cobra.Command{
		Use: "perf [options]", Short: "Check the performance of the etcd cluster", Long: t.long("", checkPerfHelp),
		RunE: t.run(func(ctx context.Context, args []string) error { return runCheckPerf(ctx, t, args, opts) }),
	}
	cmd.Flags().StringVar(&opts.load, "load", "s", "The performance check's workload model. Accepted workloads: s(small), m(medium), l(large), xl(xLarge). "+
		"Different workload models use different configurations in terms of number of clients and expected throughput.")
	opts.bind(t, cmd, "/etcdctl-check-perf/")
	if !t.upstream() {
		cmd.Flags().DurationVar(&opts.duration, "duration", perfDuration, "how long to write")
	} else {
		opts.duration = perfDuration
	}
	app.CompleteValues(cmd, "load", "small", "medium", "large", "xLarge")
	return t.offer(cmd)
}

// perfLoad returns the writes a second and the clients of a workload.
func perfLoad(workload string) (writes, clients int) {
	switch workload {
	case "m":
		return 1000, 200
	case "l":
		return 8000, 500
	case "xl":
		return 15000, 1000
	}
	return 150, 50
}

func runCheckPerf(ctx context.Context, t *tree, args []string, opts checkOptions) error {
	check, err := opts.begin(ctx, t, args, perfLoad, "'etcdctl del --prefix "+opts.prefix+"'")
	if err != nil {
		return err
	}
	defer check.close()
	if t.upstream() { // which deletes the keys again after this signal alone
		var stop context.CancelFunc
		ctx, stop = t.Heed(ctx, os.Interrupt)
		defer stop()
	}
	client := check.clients[0]
	bar := t.secondsBar(ctx, opts.duration)
	stats := load.Run(ctx, check.clients, load.Options{
		Prefix: opts.prefix, KeySize: perfKeySize, ValueSize: perfValueSize, Rate: check.amount, Duration: opts.duration, Timeout: t.writeTimeout(),
	}, func() {})
	bar()
	if t.upstream() {
		return t.upstreamPerf(ctx, client, opts, stats, check.amount)
	}
	cleanErr := t.cleanUp(ctx, client, opts)
	if err := context.Cause(ctx); err != nil {
		return errors.Join(cleanErr, err)
	}
	p := newPerfResult(stats, check.amount, cleaning{SizeBefore: check.sizeBytes, SizeAfter: t.dbSize(ctx, client)})
	p.Pass = p.Pass && p.quick()
	if cleanErr != nil {
		p.Cleaning.Error = cleanErr.Error()
	}
	if err := errors.Join(t.print(p.result()), cleanErr); err != nil {
		return err
	}
	if !p.Pass {
		return cli.Verdict(errors.New("the cluster is too slow for this load"))
	}
	return nil
}

// secondsBar shows the seconds that have passed, and returns what ends it.
func (t *tree) secondsBar(ctx context.Context, d time.Duration) (stop func()) {
	if !t.upstream() && !t.Live {
		return func() {}
	}
	bar := pb.New(int(d / time.Second))
	bar.SetWriter(t.Err)
	bar.Start()
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		for range int(d / time.Second) {
			select {
			case <-tick.C:
				bar.Add(1)
			case <-ctx.Done():
				return
			}
		}
	}()
	return func() { cancel(); <-done; bar.Finish() }
}

// perfResult is the answer of check perf.
type perfResult struct {
	Pass             bool           `json:"pass"`
	WritesPerSecond  float64        `json:"writesPerSecond"`
	WantedPerSecond  int            `json:"wantedPerSecond"`
	SlowestSeconds   float64        `json:"slowestSeconds"`
	DeviationSeconds float64        `json:"standardDeviationSeconds"`
	RMSSeconds       float64        `json:"rootMeanSquareSeconds"`
	Errors           map[string]int `json:"errors,omitempty"`
	Cleaning         cleaning       `json:"cleanup"`
}

func newPerfResult(s report.Stats, writes int, c cleaning) perfResult {
	p := perfResult{
		WritesPerSecond: number(s.RPS), WantedPerSecond: writes, SlowestSeconds: number(s.Slowest), DeviationSeconds: number(s.Stddev),
		RMSSeconds: number(math.Hypot(s.Average, s.Stddev)), Errors: s.ErrorDist, Cleaning: c,
	}
	p.Pass = len(p.Errors) == 0 && p.fast() && p.SlowestSeconds <= perfSlowest
	return p
}

// number is 0 for what no write was measured for.
func number(f float64) float64 {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return 0
	}
	return f
}

// even is upstream's judgement of the spread. Writes that are all equally slow
// pass it.
func (p perfResult) even() bool { return p.DeviationSeconds <= perfStddev }

// quick judges all writes by a number that grows with each of them, so that a
// slower cluster never passes where a faster one fails.
func (p perfResult) quick() bool { return p.RMSSeconds <= perfRMS }

func (p perfResult) fast() bool { return p.WritesPerSecond/float64(p.WantedPerSecond) > perfShare }

func (p perfResult) result() result {
	return result{native: p, simple: func(w io.Writer) {
		p.write(w, func() {
			tell(w, p.quick(), fmt.Sprintf("PASS: Root mean square of the writes is %fs", p.RMSSeconds), fmt.Sprintf("Root mean square of the writes too high: %fs", p.RMSSeconds))
		})
		fmt.Fprintf(w, "database size %s before, %s after\n", output.Bytes(p.Cleaning.SizeBefore), output.Bytes(p.Cleaning.SizeAfter))
	}}
}

// write tells the result in etcdctl's words, but for the spread.
func (p perfResult) write(w io.Writer, spread func()) {
	tellErrors(w, p.Errors)
	perSecond := int(p.WritesPerSecond) + 1
	tell(w, p.fast(), fmt.Sprintf("PASS: Throughput is %d writes/s", perSecond), fmt.Sprintf("FAIL: Throughput too low: %d writes/s", perSecond))
	tell(w, p.SlowestSeconds <= perfSlowest, fmt.Sprintf("PASS: Slowest request took %fs", p.SlowestSeconds), fmt.Sprintf("Slowest request took too long: %fs", p.SlowestSeconds))
	spread()
	tell(w, p.Pass, "PASS", "FAIL")
}

func tell(w io.Writer, ok bool, good, bad string) {
	if ok {
		fmt.Fprintln(w, good)
	} else {
		fmt.Fprintln(w, bad)
	}
}

// upstreamPerf cleans up as far as etcdctl does, and tells as it does.
func (t *tree) upstreamPerf(ctx context.Context, client *clientv3.Client, opts checkOptions, stats report.Stats, writes int) error {
	revision, err := load.Remove(ctx, client, opts.prefix)
	if err != nil {
		fmt.Fprintf(t.Out, "FAIL: Cleanup failed during key deletion: ERROR(%v)\n", errors.Unwrap(err))
	}
	if err := t.upstreamCleanUp(ctx, client, opts, revision); err != nil {
		return err
	}
	p := newPerfResult(stats, writes, cleaning{})
	p.Pass = p.Pass && p.even()
	p.write(t.Out, func() {
		tell(t.Out, p.even(), fmt.Sprintf("PASS: Stddev is %fs", p.DeviationSeconds), fmt.Sprintf("Stddev too high: %fs", p.DeviationSeconds))
	})
	if !p.Pass {
		return errTold
	}
	return nil
}
