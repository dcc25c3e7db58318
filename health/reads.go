package health

import (
	"context"
	"slices"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// probeKey is read to see whether reads are served. It need not exist: etcd
// asks the other members before it looks.
const probeKey = "health"

// read times linearizable reads through the member.
func (p *probe) read(ctx context.Context, opts Options) *Reads {
	n := opts.Reads
	if n <= 0 {
		n = defaultReads
	}
	var took []time.Duration
	reads := &Reads{}
	for range n {
		start := time.Now()
		err := p.readOnce(ctx, opts.timeout())
		if err != nil {
			reads.Error = err.Error()
			break // without quorum each further read would wait as long
		}
		took = append(took, time.Since(start))
	}
	reads.Count = len(took)
	if len(took) == 0 {
		return reads
	}
	slices.Sort(took)
	reads.MinSeconds, reads.MedianSeconds = took[0].Seconds(), took[len(took)/2].Seconds()
	return reads
}

func (p *probe) readOnce(ctx context.Context, timeout time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	_, err := p.client.Get(ctx, probeKey)
	if err == nil || !refusedAfterRead(err) {
		return err
	}
	// A refusal names nobody, and behind a load balancer may be another's. The
	// member list is read likewise, asks for no rights, and says who answers.
	if _, err := p.client.MemberList(ctx); err != nil && !refused(err) {
		return err
	}
	return nil
}

// refusedAfterRead reports whether the member refused to show what it had read:
// etcd looks at rights after the other members have confirmed the read. The
// refusal of a proxy shows nothing.
func refusedAfterRead(err error) bool {
	for _, known := range []error{rpctypes.ErrPermissionDenied, rpctypes.ErrUserEmpty, rpctypes.ErrInvalidAuthToken, rpctypes.ErrAuthOldRevision} {
		if is(err, known) {
			return true
		}
	}
	return false
}

// refused reports whether the member answered, if only to say that the caller
// may not: rights are looked at after the other members have been asked.
func refused(err error) bool {
	for _, known := range []error{
		rpctypes.ErrPermissionDenied, rpctypes.ErrUserEmpty, rpctypes.ErrInvalidAuthToken,
		rpctypes.ErrAuthFailed, rpctypes.ErrAuthOldRevision,
	} {
		if is(err, known) {
			return true
		}
	}
	switch status.Code(err) {
	case codes.PermissionDenied, codes.Unauthenticated:
		return true
	default:
		return false
	}
}

// isCompacted reports whether a revision is gone already.
func isCompacted(err error) bool {
	return is(err, rpctypes.ErrCompacted)
}
