//go:build full || bench

package health_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/etcdkit/etcdkit/internal/testing/etcdtest"
)

type span struct{ from, to time.Time }

func (s span) overlaps(o span) bool { return s.from.Before(o.to) && o.from.Before(s.to) }

// attempt is one write.
type attempt struct {
	from, to time.Time
	err      error
}

// stream begins writes at a steady pace, whatever became of those before: it
// shows what a new request meets at every moment.
type stream struct {
	mu       sync.Mutex
	attempts []attempt
}

// begin starts a stream that ends with ctx. Wait for wg before looking at it.
func begin(ctx context.Context, t testing.TB, wg *sync.WaitGroup, name string, endpoints ...string) *stream {
	t.Helper()
	const pace = 10 * time.Millisecond
	client := etcdtest.Client(t, endpoints...)
	s := &stream{}
	wg.Go(func() {
		for n := 0; ctx.Err() == nil; n++ {
			wg.Go(func() {
				once, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				a := attempt{from: time.Now()}
				_, a.err = client.Put(once, fmt.Sprint("stream/", name, "/", n%100), "v")
				a.to = time.Now()
				s.mu.Lock()
				defer s.mu.Unlock()
				s.attempts = append(s.attempts, a)
			})
			select {
			case <-ctx.Done():
			case <-time.After(pace):
			}
		}
	})
	return s
}

// outside are the attempts that did not meet the turn.
func (s *stream) outside(turn span) []attempt {
	return slices.DeleteFunc(slices.Clone(s.attempts), func(a attempt) bool { return turn.overlaps(span{a.from, a.to}) })
}

// worst is the longest time in which every write that began failed, and the
// longest that one waited which succeeded.
func worst(attempts []attempt) (failing, waiting time.Duration) {
	attempts = slices.SortedFunc(slices.Values(attempts), func(a, b attempt) int { return a.from.Compare(b.from) })
	var since time.Time // of the first of the failures in a row
	for _, a := range attempts {
		if a.err == nil {
			waiting = max(waiting, a.to.Sub(a.from))
		} else if since.IsZero() {
			since = a.from
		}
		if !since.IsZero() {
			failing = max(failing, a.from.Sub(since))
		}
		if a.err == nil {
			since = time.Time{}
		}
	}
	return failing, waiting
}

func failures(attempts []attempt) []attempt {
	return slices.DeleteFunc(slices.Clone(attempts), func(a attempt) bool { return a.err == nil })
}

// leading is the server that leads.
func leading(t testing.TB, servers *etcdtest.Servers) (leads *etcdtest.Server) {
	t.Helper()
	client := etcdtest.Client(t, servers.Endpoints()...)
	etcdtest.Until(t, "a leader", func(ctx context.Context) bool {
		for _, m := range servers.Members {
			if s, err := client.Status(ctx, m.Endpoint); err == nil && s.Leader == s.Header.MemberId {
				leads = m
			}
		}
		return leads != nil
	})
	return leads
}
