package health_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/etcdkit/etcdkit/health"
)

// lifeSigns is a member that answers for a while.
type lifeSigns struct {
	health.Client
	until time.Time
}

func (l lifeSigns) MemberList(ctx context.Context, _ ...clientv3.OpOption) (*clientv3.MemberListResponse, error) {
	if time.Now().Before(l.until) {
		return &clientv3.MemberListResponse{}, nil
	}
	<-ctx.Done()
	return nil, ctx.Err()
}

// A long request has no deadline of its own, as long as the member lives
// (etcd-io/etcd#8260: five seconds were the end of every larger database).
func TestALongRequestLastsAsLongAsTheMemberLives(t *testing.T) {
	failure := errors.New("failed at its end")
	for name, tc := range map[string]struct {
		takes, lives time.Duration
		err          error
		want         string
	}{
		"an hour of work":                    {takes: time.Hour, lives: 2 * time.Hour},
		"a failure is told":                  {takes: time.Hour, lives: 2 * time.Hour, err: failure, want: "failed at its end"},
		"a member that stops giving signs":   {takes: time.Hour, lives: time.Minute, want: "no sign of life for 3"},
		"one that is quiet for a short time": {takes: 10 * time.Second, lives: 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				err := health.Attended(t.Context(), lifeSigns{until: time.Now().Add(tc.lives)}, 30*time.Second, func(ctx context.Context) error {
					select {
					case <-time.After(tc.takes):
						return tc.err
					case <-ctx.Done():
						return ctx.Err()
					}
				})
				if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
					t.Errorf("got %v, want %q", err, tc.want)
				}
			})
		})
	}
}
