// Package load puts a measured load of writes on a cluster, and takes it away
// again.
package load

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/pkg/v3/report"
	"golang.org/x/time/rate"
)

// ErrNotEmpty says that there are keys under the prefix already.
var ErrNotEmpty = errors.New("prefix has keys")

// cleanupTimeout bounds the deletion of what was written.
const cleanupTimeout = 30 * time.Second

// Options describes the load.
type Options struct {
	Prefix             string
	KeySize, ValueSize int
	Rate               int           // writes a second; 0 means as fast as the cluster takes them
	Duration           time.Duration // of a load with a rate
	Total              int           // writes of a load without one
	Timeout            time.Duration // of each write; 0 means none
}

// Check returns ErrNotEmpty if there are keys under the prefix.
func Check(ctx context.Context, client *clientv3.Client, prefix string) error {
	resp, err := client.Get(ctx, prefix, clientv3.WithPrefix(), clientv3.WithLimit(1))
	if err != nil {
		return err
	}
	if len(resp.Kvs) > 0 {
		return ErrNotEmpty
	}
	return nil
}

// Run writes through all clients at once, until the duration or the number of
// writes is reached or ctx ends, and measures each write. Each write that is
// done is told to wrote.
func Run(ctx context.Context, clients []*clientv3.Client, o Options, wrote func()) report.Stats {
	requests := make(chan clientv3.Op, len(clients))
	measured := report.NewReport("%4.4f", "", false)
	var wg sync.WaitGroup
	for _, c := range clients {
		wg.Go(func() {
			for op := range requests {
				start := time.Now()
				err := o.write(ctx, c, op)
				measured.Results() <- report.Result{Err: err, Start: start, End: time.Now()}
				wrote()
			}
		})
	}
	stats := measured.Stats()
	o.feed(ctx, requests)
	wg.Wait()
	close(measured.Results())
	return <-stats
}

// write waits for a write that was begun, though ctx has ended: it is in flight
// anyway.
func (o Options) write(ctx context.Context, c *clientv3.Client, op clientv3.Op) error {
	ctx = context.WithoutCancel(ctx)
	if o.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, o.Timeout)
		defer cancel()
	}
	_, err := c.Do(ctx, op)
	return err
}

// feed hands out the writes, and closes requests after the last.
func (o Options) feed(ctx context.Context, requests chan<- clientv3.Op) {
	defer close(requests)
	key, value := make([]byte, o.KeySize), string(make([]byte, o.ValueSize))
	next := func() clientv3.Op {
		binary.PutVarint(key, rand.Int64N(math.MaxInt64))
		return clientv3.OpPut(o.Prefix+string(key), value)
	}
	if o.Rate == 0 {
		for range o.Total {
			select {
			case requests <- next():
			case <-ctx.Done():
				return
			}
		}
		return
	}
	ctx, cancel := context.WithTimeout(ctx, o.Duration)
	defer cancel()
	limit := rate.NewLimiter(rate.Limit(o.Rate), 1)
	for limit.Wait(ctx) == nil {
		select {
		case requests <- next():
		case <-ctx.Done():
			return
		}
	}
}

// Remove deletes what was written under the prefix, even when ctx has ended,
// and returns the revision of that.
func Remove(ctx context.Context, client *clientv3.Client, prefix string) (int64, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTimeout)
	defer cancel()
	resp, err := client.Delete(ctx, prefix, clientv3.WithPrefix())
	if err != nil {
		return 0, fmt.Errorf("delete the keys under %s: %w", prefix, err)
	}
	return resp.Header.GetRevision(), nil
}

// Compact drops the history up to the revision, in the file as well.
func Compact(ctx context.Context, client *clientv3.Client, revision int64) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTimeout)
	defer cancel()
	_, err := client.Compact(ctx, revision, clientv3.WithCompactPhysical())
	return err
}

// Purge removes what was written under the prefix with its history, even when
// ctx has ended.
func Purge(ctx context.Context, client *clientv3.Client, prefix string) error {
	if _, err := Remove(ctx, client, prefix); err != nil {
		return err
	}
	// A compaction keeps the tombstones of its own revision, one for each key
	// that was deleted there. Two more revisions leave but one.
	if err := touch(ctx, client, prefix); err != nil {
		return err
	}
	revision, err := Remove(ctx, client, prefix)
	if err != nil {
		return err
	}
	if err := Compact(ctx, client, revision); err != nil {
		return fmt.Errorf("compact the history of %s: %w", prefix, err)
	}
	return nil
}

func touch(ctx context.Context, client *clientv3.Client, prefix string) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTimeout)
	defer cancel()
	_, err := client.Put(ctx, prefix+"end", "")
	return err
}
