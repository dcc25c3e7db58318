// Package embedded runs etcd servers inside this process: throwaway clusters
// for the playground, for backup drills and for tests.
package embedded

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"go.etcd.io/etcd/client/pkg/v3/fileutil"
	"go.etcd.io/etcd/server/v3/embed"
	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"

	"github.com/etcdkit/etcdkit/internal/dirfd"
	"github.com/etcdkit/etcdkit/internal/scratch"
)

// MaxMembers is the largest cluster that Start builds: etcd's documentation
// advises at most seven members, and five already survive two failures.
const MaxMembers = 5

// startTries bounds the retries when a port was taken between being found
// free and being used.
const startTries = 3

// A member that is alone has nobody to wait for, but for its own election: with
// etcd's defaults, half a second of every start.
const (
	aloneTickMs     = 10
	aloneElectionMs = 100
)

// Options describes the cluster that Start builds. The zero value is one
// member over plain HTTP in a temporary folder.
type Options struct {
	Members int    // 1 to MaxMembers; 0 means 1
	Dir     string // holds one data directory a member; "" means a temporary folder, removed by Close

	// Configure, if set, has the last word on the configuration of member i,
	// for example TLS, a quota or a snapshot count.
	Configure func(i int, cfg *embed.Config)
	Log       *zap.Logger // nil means none
	// Fsync makes members sync their write-ahead log. Data that is thrown
	// away needs no sync, and tests on a busy disk are faster without.
	Fsync bool
}

// Cluster is a running cluster of embedded members.
type Cluster struct {
	Members []*Member
	// LeftAlone looked like what killed processes leave, and may not be that.
	LeftAlone []scratch.Left

	failed   *Failure
	dir      *dirfd.Dir // parent of the data directories, held as long as members run
	scratch  *scratch.Folder
	reserved []*Port
}

// Start builds a new cluster on free loopback ports and waits until every
// member serves. Close stops it and removes what Start created.
func Start(ctx context.Context, opts Options) (*Cluster, error) {
	if opts.Members == 0 {
		opts.Members = 1
	}
	if opts.Members < 1 || opts.Members > MaxMembers {
		return nil, fmt.Errorf("start cluster: %d members asked for, from 1 to %d are possible", opts.Members, MaxMembers)
	}
	if opts.Log == nil {
		opts.Log = zap.NewNop()
	}
	for try := 1; ; try++ {
		c, err := start(ctx, opts)
		if err == nil || try == startTries || !strings.Contains(err.Error(), "address already in use") {
			return c, err
		}
	}
}

func start(ctx context.Context, opts Options) (c *Cluster, err error) {
	c = &Cluster{failed: NewFailure()}
	opts.Log = opts.Log.WithOptions(zap.WithFatalHook(c.failed), zap.WithPanicHook(c.failed))
	defer func() {
		if err != nil {
			err = errors.Join(err, c.Close())
			c = nil
		}
	}()
	if err := c.openDir(opts); err != nil {
		return c, fmt.Errorf("start cluster: %w", err)
	}
	if err := c.configure(opts); err != nil {
		return c, err
	}
	// Every member needs the others to become ready, so they start side by side.
	g, ctx := errgroup.WithContext(ctx)
	for _, m := range c.Members {
		g.Go(func() error { return m.Start(ctx) })
	}
	return c, g.Wait()
}

// openDir opens the folder of the data directories. Members reach it through
// the handle: etcd opens its files by path, and the path may lead elsewhere
// later.
func (c *Cluster) openDir(opts Options) (err error) {
	if opts.Dir != "" {
		if err := os.MkdirAll(opts.Dir, fileutil.PrivateDirMode); err != nil {
			return err
		}
		c.dir, err = dirfd.Open(opts.Dir)
		return err
	}
	if c.scratch, c.LeftAlone, err = newScratch(); err != nil {
		return err
	}
	c.dir, err = c.scratch.Dir().Dup()
	return err
}

// configure reserves ports and writes the configuration of every member.
func (c *Cluster) configure(opts Options) error {
	token := fmt.Sprintf("etcdkit-embedded-%d-%d", os.Getpid(), time.Now().UnixNano())
	var initial []string
	for i := range opts.Members {
		client, err := c.reserve()
		if err != nil {
			return err
		}
		peer, err := c.reserve()
		if err != nil {
			return err
		}
		cfg := embed.NewConfig()
		cfg.Name = fmt.Sprintf("m%d", i+1)
		cfg.Dir = filepath.Join(c.dir.Through(), cfg.Name+".etcd")
		cfg.ListenClientUrls, cfg.AdvertiseClientUrls = []url.URL{client}, []url.URL{client}
		cfg.ListenPeerUrls, cfg.AdvertisePeerUrls = []url.URL{peer}, []url.URL{peer}
		cfg.InitialClusterToken = token
		cfg.UnsafeNoFsync = !opts.Fsync
		if opts.Members == 1 {
			cfg.TickMs, cfg.ElectionMs = aloneTickMs, aloneElectionMs
		}
		cfg.ZapLoggerBuilder = embed.NewZapLoggerBuilder(opts.Log)
		if opts.Configure != nil {
			opts.Configure(i, cfg)
		}
		initial = append(initial, cfg.Name+"="+cfg.AdvertisePeerUrls[0].String())
		c.Members = append(c.Members, &Member{cfg: cfg, parent: c.dir, failed: c.failed})
	}
	for _, m := range c.Members {
		m.cfg.InitialCluster = strings.Join(initial, ",")
	}
	return nil
}

// reserve finds a free loopback port and keeps it for this cluster.
func (c *Cluster) reserve() (url.URL, error) {
	r, err := ReservePort()
	if err != nil {
		return url.URL{}, fmt.Errorf("start cluster: %w", err)
	}
	c.reserved = append(c.reserved, r)
	return url.URL{Scheme: "http", Host: r.Addr()}, nil
}

// Endpoints returns the client URL of every member, in member order.
func (c *Cluster) Endpoints() []string {
	eps := make([]string, len(c.Members))
	for i, m := range c.Members {
		eps[i] = m.Endpoint()
	}
	return eps
}

// Dir returns the folder that holds the members' data directories.
func (c *Cluster) Dir() string { return c.dir.Path() }

// Failed is closed when a member cannot go on, because its disk is full for
// example. Err then tells why, and Close still removes what Start created.
func (c *Cluster) Failed() <-chan struct{} { return c.failed.done }

// Err returns why a member could not go on, or nil.
func (c *Cluster) Err() error {
	select {
	case <-c.failed.done:
		return c.dir.Named(c.failed.err)
	default:
		return nil
	}
}

// Close stops every member and removes the folder that Start created. A
// folder given by the caller stays.
func (c *Cluster) Close() error {
	var g sync.WaitGroup
	for _, m := range c.Members {
		g.Go(m.Stop) // one after the other, each would wait for its peers
	}
	g.Wait()
	for _, r := range c.reserved {
		r.Release()
	}
	var err error
	if c.scratch != nil {
		err = c.scratch.Remove()
	}
	if c.dir != nil && c.Err() == nil { // a member that failed may still open files through the handle
		err = errors.Join(err, c.dir.Close())
	}
	return err
}
