package snapshot

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

func TestWhichMemberIsTaken(t *testing.T) {
	t.Parallel()
	// Each word is a member: its traits, then its revision. l leads, d is being
	// defragmented, x has no quorum, n is a learner.
	for name, tc := range map[string]struct{ members, want string }{
		"a follower before the leader":                   {"l9 9", "9"},
		"the leader where it is alone":                   {"l9", "l9"},
		"of two followers the more advanced":             {"7 9 l9", "9"},
		"one that lags behind, cut off from the others":  {"x5 l9 8", "8"},
		"the leader before one that is cut off":          {"x5 l9", "l9"},
		"without quorum the most advanced":               {"x5 x9 x7", "x9"},
		"not one that is being defragmented":             {"d9 8 l9", "8"},
		"the leader before one being defragmented":       {"d9 d9 l9", "l9"},
		"of two being defragmented the follower":         {"dl9 d9", "d9"},
		"without quorum, a defragmentation is no matter": {"xd9 x5", "xd9"},
		"a learner last":                                 {"n9 x5 l9", "l9"},
		"a learner after one without quorum":             {"n9 x5", "x5"},
	} {
		t.Run(name, func(t *testing.T) {
			var all []*candidate
			for i, word := range strings.Fields(tc.members) {
				traits := strings.TrimRight(word, "0123456789")
				c := &candidate{
					endpoint: word, quorum: !strings.ContainsAny(traits, "xn"), busy: strings.Contains(traits, "d"),
					revision: int64(word[len(traits)] - '0'),
					status:   &clientv3.StatusResponse{Header: &pb.ResponseHeader{MemberId: uint64(i + 1)}, Leader: 99, IsLearner: strings.Contains(traits, "n")},
				}
				if strings.Contains(traits, "l") {
					c.status.Leader = c.status.Header.MemberId
				}
				all = append(all, c)
			}
			slices.SortStableFunc(all, better)
			if got := all[0].endpoint; got != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
		})
	}
}

// deaf does not answer for the first questions.
type deaf struct {
	Client
	silent int
}

func (d *deaf) Get(ctx context.Context, _ string, _ ...clientv3.OpOption) (*clientv3.GetResponse, error) {
	if d.silent--; d.silent >= 0 {
		return nil, errors.New("no answer")
	}
	return &clientv3.GetResponse{Header: &pb.ResponseHeader{Revision: 7}}, ctx.Err()
}

// A member that does not answer while it is being defragmented has not lost its
// quorum: it is asked again before its snapshot is marked so.
func TestAMemberBeingDefragmentedIsAskedAgain(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		busy, learner bool
		silent        int
		want          bool
	}{
		"it answers by then":   {true, false, 0, true},
		"it still does not":    {true, false, 1, false},
		"it was not busy":      {false, false, 0, false},
		"a learner is not one": {true, true, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			c := &candidate{client: &deaf{silent: tc.silent}, busy: tc.busy, status: &clientv3.StatusResponse{IsLearner: tc.learner}}
			if c.await(t.Context(), askTimeout); c.quorum != tc.want {
				t.Errorf("quorum: %t, want %t", c.quorum, tc.want)
			}
		})
	}
}

func TestALearnerIsCalledOne(t *testing.T) {
	s := &Saved{}
	s.warn(&candidate{endpoint: "m1", status: &clientv3.StatusResponse{IsLearner: true}})
	if len(s.Warnings) != 1 || !strings.Contains(s.Warnings[0], "learner") || strings.Contains(s.Warnings[0], "quorum") {
		t.Errorf("warned %q, want that it is a learner", s.Warnings)
	}
}
