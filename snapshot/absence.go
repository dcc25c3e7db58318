package snapshot

import (
	"context"
	"errors"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/etcdkit/etcdkit/internal/store"
)

// secondLook is how long to wait before an object that may be on its way is asked
// for again.
const secondLook = time.Second

// confirmAbsent asks for exactly these objects: a listing that does not show an
// object proves nothing. It returns what became of each: nil for one that is
// there, ErrNotExist for one that the store itself says is not, and whatever else
// stood in the way of knowing. With again what is absent is asked for once more
// after a wait, as is right for what is young.
func confirmAbsent(ctx context.Context, repo store.Store, keys []string, again bool) map[string]error {
	found := lookAt(ctx, repo, keys)
	if !again {
		return found
	}
	var absent []string
	for _, key := range keys {
		if errors.Is(found[key], store.ErrNotExist) {
			absent = append(absent, key)
		}
	}
	if len(absent) == 0 {
		return found
	}
	select {
	case <-ctx.Done():
	case <-time.After(secondLook):
	}
	for key, err := range lookAt(ctx, repo, absent) {
		found[key] = err
	}
	return found
}

// lookAt asks for each object by its name.
func lookAt(ctx context.Context, repo store.Store, keys []string) map[string]error {
	errs := make([]error, len(keys))
	g := errgroup.Group{}
	g.SetLimit(readers)
	for i, key := range keys {
		g.Go(func() error {
			_, errs[i] = repo.Stat(ctx, key)
			return nil
		})
	}
	_ = g.Wait() // what went wrong is in errs
	found := make(map[string]error, len(keys))
	for i, key := range keys {
		found[key] = errs[i]
	}
	return found
}
