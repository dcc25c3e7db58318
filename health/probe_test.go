package health_test

import (
	"context"
	"errors"
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/etcdkit/etcdkit/health"
)

// answering is a member that is well. It waits before it answers a read until
// a handshake has begun, so that the two are side by side.
type answering struct{ handshake <-chan struct{} }

func (a answering) Get(ctx context.Context, _ string, _ ...clientv3.OpOption) (*clientv3.GetResponse, error) {
	select {
	case <-a.handshake:
	case <-ctx.Done():
	}
	return &clientv3.GetResponse{Header: header()}, ctx.Err()
}

func (answering) MemberList(context.Context, ...clientv3.OpOption) (*clientv3.MemberListResponse, error) {
	return &clientv3.MemberListResponse{Header: header(), Members: []*pb.Member{{ID: 1, Name: "m1", ClientURLs: []string{"https://m1:2379"}}}}, nil
}

func (answering) Status(context.Context, string) (*clientv3.StatusResponse, error) {
	return &clientv3.StatusResponse{Header: header(), Leader: 1}, nil
}

func (answering) HashKV(context.Context, string, int64) (*clientv3.HashKVResponse, error) {
	return nil, errors.New("not asked for")
}

func (answering) AlarmList(context.Context) (*clientv3.AlarmResponse, error) {
	return &clientv3.AlarmResponse{Header: header()}, nil
}

// header is that of every answer.
func header() *pb.ResponseHeader { return &pb.ResponseHeader{ClusterId: 1, MemberId: 1} }

func (answering) Close() error { return nil }

// What is gathered side by side must not share what it writes: under the race
// detector this fails when a failed handshake reads the probe that the reads
// and the metrics are written to.
func TestEvidenceThatFailsIsNotedBesideWhatSucceeds(t *testing.T) {
	t.Parallel()
	handshake := make(chan struct{})
	facts, err := health.Gather(t.Context(), health.Doors{
		Dial: func(context.Context, string) (health.Client, error) { return answering{handshake}, nil },
		Handshake: func(context.Context, string) ([]health.Certificate, error) {
			close(handshake)
			return nil, errors.New("refused")
		},
		Scrape: func(context.Context, string) (health.Samples, error) { return nil, errors.New("no page") },
	}, []string{"https://m1:2379"}, health.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if m := facts.Members[0]; m.Reads == nil || m.Reads.Count == 0 {
		t.Errorf("member %+v, want its reads", m)
	}
	reasons := map[health.Kind]string{}
	for _, g := range facts.Gaps {
		reasons[g.Check] = g.Member + ": " + g.Reason
	}
	if reasons[health.KindCerts] != "m1: refused" || reasons[health.KindMetrics] != "m1: no page" {
		t.Errorf("gaps %+v, want the certificates refused and no metrics", facts.Gaps)
	}
}
