package health

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// endpointOperator answers for one member, or never.
type endpointOperator struct {
	Operator
	member Member
	silent bool
}

func (o *endpointOperator) Status(ctx context.Context, _ string) (*clientv3.StatusResponse, error) {
	if o.silent {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return &clientv3.StatusResponse{Header: &pb.ResponseHeader{MemberId: o.member.ID}}, nil
}

func (o *endpointOperator) Close() error { return nil }

// A voter that has stopped since it was looked at uses up neither the deadline
// of the others nor the request.
func TestAStoppedVoterLeavesTheRequestToTheNext(t *testing.T) {
	errNo := errors.New("no")
	for name, tc := range map[string]struct {
		silentStatus, silentRequest bool
		answer                      error // of the voters that answer
		asked                       string
	}{
		"all answer":                            {asked: "a"},
		"one stopped before the request":        {silentStatus: true, asked: "b"},
		"one stopped during the request":        {silentRequest: true, asked: "ab"},
		"the next is not asked after a refusal": {answer: errNo, asked: "a"},
		"a refusal of the second, as well":      {silentRequest: true, answer: errNo, asked: "ab"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				facts := fragmented()
				r := newRun(Tools{Operate: func(_ context.Context, endpoint string) (Operator, error) {
					for i, m := range facts.Members {
						if m.Endpoint == endpoint {
							return &endpointOperator{member: m, silent: i == 0 && tc.silentStatus}, nil
						}
					}
					return nil, errors.New("unknown endpoint")
				}}, nil, DefragOptions{})
				asked := ""
				err := r.through(t.Context(), facts, func(ctx context.Context, client Operator) error {
					m := client.(*identifiedOperator).Operator.(*endpointOperator).member
					asked += m.Name
					if left, ok := ctx.Deadline(); !ok || time.Until(left) < 2*defaultTimeout {
						t.Errorf("%s is asked with %s left, want a deadline of its own", m.Name, time.Until(left))
					}
					if m.ID == facts.Members[0].ID && tc.silentRequest {
						<-ctx.Done()
						return ctx.Err()
					}
					return tc.answer
				})
				if !errors.Is(err, tc.answer) || asked != tc.asked {
					t.Errorf("asked %s: %v; want %s, %v", asked, err, tc.asked, tc.answer)
				}
				if client, err := r.anyOf(t.Context(), facts); err != nil {
					t.Errorf("no voter is found: %v", err)
				} else if err := client.Close(); err != nil {
					t.Error(err)
				}
			})
		})
	}
}
