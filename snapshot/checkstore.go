package snapshot

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/etcdkit/etcdkit/internal/hint"
	"github.com/etcdkit/etcdkit/internal/store"
)

// ErrStoreLacks tells that a store does not let do, or cannot do, what backups
// need.
var ErrStoreLacks = errors.New("the store lacks what backups need")

// probePrefix begins the names of CheckStore's objects. No backup's does.
const probePrefix = "etcdkit-check-store-"

// errProbe breaks an upload on purpose.
var errProbe = errors.New("upload broken on purpose")

// CheckStore tries everything that backups need of a repository with objects
// of its own, and removes them. Every step is tried, whatever became of those
// before; an error means that the store was not reached at all.
func CheckStore(ctx context.Context, repo store.Store, now func() time.Time) ([]Check, error) {
	c := &storeCheck{ctx: ctx, repo: repo, now: now, key: probePrefix + newRun() + newRun()}
	small, large := []byte("etcdkit"), make([]byte, store.MinPartSize+1)
	c.step("put", func() error { return c.put(c.key, bytes.NewReader(small)) })
	if c.err != nil {
		return nil, c.err
	}
	c.step("get", func() error { return c.get(c.key, small) })
	c.step("list", func() error { return c.list(c.key) })
	c.step("multipart", func() error { return c.put(c.key+"-large", bytes.NewReader(large)) })
	c.step("multipart get", func() error { return c.get(c.key+"-large", large) })
	c.step("abort", c.abort)
	c.step("list uploads", func() error {
		_, err := repo.Uploads(ctx, probePrefix)
		return err
	})
	c.step("delete", func() error {
		return errors.Join(repo.Delete(ctx, c.key), repo.Delete(ctx, c.key+"-large"))
	})
	if c.err != nil {
		return c.checks, c.err
	}
	if c.bad {
		return c.checks, ErrStoreLacks
	}
	return c.checks, nil
}

type storeCheck struct {
	ctx    context.Context // of the one check
	repo   store.Store
	now    func() time.Time
	key    string
	checks []Check
	bad    bool
	err    error // the store cannot be reached
}

func (c *storeCheck) step(name string, do func() error) {
	if c.err != nil {
		return
	}
	start := c.now()
	err := do()
	check := Check{Name: name, Result: ResultOK, TookSeconds: c.now().Sub(start).Seconds()}
	if errors.Is(err, store.ErrUnreachable) || errors.Is(err, store.ErrNoBucket) || c.ctx.Err() != nil {
		c.err = err
		return
	}
	if err != nil {
		c.bad = true
		check.Result, check.Detail = ResultBad, err.Error()
		if next := hint.Of(err); next != "" {
			check.Detail += "; " + next
		}
	}
	c.checks = append(c.checks, check)
}

func (c *storeCheck) put(key string, src io.Reader) error {
	_, err := c.repo.Put(c.ctx, key, src, store.PutOptions{PartSize: store.MinPartSize})
	return err
}

func (c *storeCheck) get(key string, want []byte) error {
	body, _, err := c.repo.Get(c.ctx, key)
	if err != nil {
		return err
	}
	got, err := io.ReadAll(io.LimitReader(body, int64(len(want))+1))
	if err == nil && !bytes.Equal(got, want) {
		err = fmt.Errorf("%d other bytes came back than the %d that were put", len(got), len(want))
	}
	return errors.Join(err, body.Close())
}

func (c *storeCheck) list(key string) error {
	objects, err := c.repo.List(c.ctx, probePrefix)
	if err != nil {
		return err
	}
	for _, o := range objects {
		if o.Key == key {
			return nil
		}
	}
	return errors.New("an object that was just put is not listed")
}

// abort breaks an upload after its first part and sees that nothing is left.
func (c *storeCheck) abort() error {
	key := c.key + "-broken"
	src := io.MultiReader(bytes.NewReader(make([]byte, store.MinPartSize)), broken{})
	err := c.put(key, src)
	if err == nil {
		return errors.New("a broken upload was stored")
	}
	var left []error
	for _, e := range unjoin(err) {
		if !errors.Is(e, errProbe) {
			left = append(left, e)
		}
	}
	return errors.Join(left...)
}

// broken is a source that breaks.
type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, errProbe }

// unjoin returns the errors that err joins.
func unjoin(err error) []error {
	if joined, ok := err.(interface{ Unwrap() []error }); ok { // the outermost join is meant
		return joined.Unwrap()
	}
	return []error{err}
}
