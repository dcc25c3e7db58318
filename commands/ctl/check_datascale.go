package ctl

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/cheggaaa/pb/v3"
	"github.com/spf13/cobra"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/etcdkit/etcdkit/internal/etcd"
	"github.com/etcdkit/etcdkit/internal/load"
	"github.com/etcdkit/etcdkit/internal/output"
)

const (
	scaleKeySize   = 512
	scaleValueSize = 512
	mebibyte       = 1 << 20
)

const checkDatascaleHelp = `Writes the keys of a workload, 1 KiB each, and shows how much memory the first
endpoint's server takes for them, from its metrics: s(mall) is 10,000 keys, m(edium)
100,000, l(arge) 1,000,000, xl(arge) 3,000,000.

Afterwards, also when it is interrupted, the keys are deleted, compacted away, and
the members defragmented, followers first: the database is as large as before.

  etcdkit check datascale --load s

Exit codes: 0 measured, 1 failed to run or to clean up, 2 wrong usage.`

func newCheckDatascaleCmd(t *tree) *cobra.Command {
	var opts checkOptions
	cmd := &cobra.Command{
		Use: "datascale [options]", Short: "Check the memory usage of holding data for different workloads on a given server endpoint.",
		Long: t.long("If no endpoint is provided, localhost will be used. If multiple endpoints are provided, first endpoint will be used.", checkDatascaleHelp),
		RunE: t.run(func(ctx context.Context, args []string) error { return runCheckDatascale(ctx, t, args, opts) }),
	}
	cmd.Flags().StringVar(&opts.load, "load", "s", "The datascale check's workload model. Accepted workloads: s(small), m(medium), l(large), xl(xLarge)")
	opts.bind(t, cmd, "/etcdctl-check-datascale/")
	return t.offer(cmd)
}

// scaleLoad returns the keys and the clients of a workload.
func scaleLoad(workload string) (keys, clients int) {
	switch workload {
	case "m":
		return 100_000, 200
	case "l":
		return 1_000_000, 500
	case "xl":
		return 3_000_000, 1000
	}
	return 10_000, 50
}

// scaleResult is the answer of check datascale.
type scaleResult struct {
	Keys      int            `json:"keys"`
	UsedBytes int64          `json:"memoryUsedBytes"`
	Errors    map[string]int `json:"errors,omitempty"`
	Cleaning  cleaning       `json:"cleanup"`
}

func runCheckDatascale(ctx context.Context, t *tree, args []string, opts checkOptions) error {
	check, err := opts.begin(ctx, t, args, scaleLoad, "etcdctl del --prefix "+opts.prefix)
	if err != nil {
		return err
	}
	defer check.close()
	client := check.clients[0]
	before, err := t.residentMemory(ctx, check.conn, "before")
	if err != nil {
		return err
	}
	r := t.scaleUp(ctx, check.clients, check.amount, opts)
	after, memoryErr := t.residentMemory(ctx, check.conn, "after")
	if memoryErr != nil && t.upstream() {
		return memoryErr
	}
	r.UsedBytes = int64(after - before)
	if t.upstream() {
		return t.upstreamScale(ctx, client, opts, r)
	}
	cleanErr := t.cleanUp(ctx, client, opts)
	r.Cleaning = cleaning{SizeBefore: check.sizeBytes, SizeAfter: t.dbSize(ctx, client)}
	if err := errors.Join(cleanErr, memoryErr, context.Cause(ctx)); err != nil {
		return err
	}
	return errors.Join(t.print(r.result()), r.failed())
}

// scaleUp writes the keys.
func (t *tree) scaleUp(ctx context.Context, clients []*clientv3.Client, keys int, opts checkOptions) scaleResult {
	wrote := func() {}
	if t.upstream() {
		fmt.Fprintf(t.Out, "Start data scale check for work load [%v key-value pairs, %v bytes per key-value, %v concurrent clients].\n",
			keys, scaleKeySize+scaleValueSize, len(clients))
	}
	if t.upstream() || t.Live {
		bar := pb.New(keys)
		bar.SetWriter(t.Err)
		bar.Start()
		defer bar.Finish()
		wrote = func() { bar.Increment() }
	}
	stats := load.Run(ctx, clients, load.Options{Prefix: opts.prefix, KeySize: scaleKeySize, ValueSize: scaleValueSize, Total: keys, Timeout: t.writeTimeout()}, wrote)
	return scaleResult{Keys: keys, Errors: stats.ErrorDist}
}

func (r scaleResult) failed() error {
	for text, n := range r.Errors {
		return fmt.Errorf("%d writes failed, such as: %s", n, text)
	}
	return nil
}

func (r scaleResult) result() result {
	return result{native: r, simple: lines(
		fmt.Sprintf("%d keys take %s of the server's memory", r.Keys, output.Bytes(r.UsedBytes)),
		fmt.Sprintf("database size %s before, %s after", output.Bytes(r.Cleaning.SizeBefore), output.Bytes(r.Cleaning.SizeAfter)),
	)}
}

// upstreamScale cleans up as far as etcdctl does, and tells as it does.
func (t *tree) upstreamScale(ctx context.Context, client *clientv3.Client, opts checkOptions, r scaleResult) error {
	revision, err := load.Remove(ctx, client, opts.prefix)
	if err != nil {
		return errors.Unwrap(err)
	}
	if err := t.upstreamCleanUp(ctx, client, opts, revision); err != nil {
		return err
	}
	if len(r.Errors) > 0 {
		tellErrors(t.Out, r.Errors)
		return errTold
	}
	_, err = fmt.Fprintf(t.Out, "PASS: Approximate system memory used : %.2f MB.\n", float64(r.UsedBytes)/mebibyte)
	return err
}

// residentMemory reads the server's resident memory from the first endpoint's
// metrics. Upstream tells the cause and the failure on standard output.
func (t *tree) residentMemory(ctx context.Context, c etcd.Config, when string) (float64, error) {
	bytes, err := residentMemory(ctx, c)
	if err == nil || !t.upstream() {
		return bytes, err
	}
	fmt.Fprintln(t.Out, err)
	fmt.Fprintf(t.Out, "FAIL: Could not read process_resident_memory_bytes %s the put operations.\n", when)
	return 0, errTold
}

func residentMemory(ctx context.Context, c etcd.Config) (float64, error) {
	host := c.Endpoints[0]
	if !strings.Contains(host, "://") {
		host = "http://" + host
	}
	client := &http.Client{Timeout: 30 * time.Second}
	if strings.HasPrefix(host, "https://") {
		cfg, err := c.Client()
		if err != nil {
			return 0, fmt.Errorf("client certificate error: %w", err)
		}
		tlsConfig := &tls.Config{MinVersion: tls.VersionTLS12}
		if cfg.TLS != nil {
			tlsConfig = cfg.TLS
		}
		client.Transport = &http.Transport{TLSClientConfig: tlsConfig}
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, host+"/metrics", nil)
	if err != nil {
		return 0, fmt.Errorf("fetch error: %w", err)
	}
	resp, err := client.Do(req)
	if err != nil {
		return 0, fmt.Errorf("fetch error: %w", err)
	}
	defer resp.Body.Close()
	return findResidentMemory(resp.Body)
}

func findResidentMemory(page io.Reader) (float64, error) {
	const name = "process_resident_memory_bytes"
	lines := bufio.NewScanner(page)
	for lines.Scan() {
		if value, ok := strings.CutPrefix(lines.Text(), name); ok {
			bytes, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
			if err != nil {
				return 0, fmt.Errorf("parse error: %w", err)
			}
			return bytes, nil
		}
	}
	return 0, errors.Join(lines.Err(), fmt.Errorf("could not find: %s", name))
}
