package health

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/etcdkit/etcdkit/internal/hint"
	"github.com/etcdkit/etcdkit/internal/output"
)

// probe is one endpoint being asked: its facts, and the client they came by.
type probe struct {
	Member
	who    identity // who answered; before the answer, who must
	client Client
	list   *clientv3.MemberListResponse
	gaps   []Gap
	final  error // ends the gathering
}

// errNotWanted is the reason why evidence is missing that nobody asked for.
var errNotWanted = errors.New("not asked for")

func (p *probe) gap(c Kind, format string, args ...any) {
	p.gaps = append(p.gaps, Gap{Member: p.Label(), Check: c, Reason: fmt.Sprintf(format, args...)})
}

// ask fills in what the member says of itself and of the cluster. From then on
// the client takes answers only of the member that gave the first.
func (p *probe) ask(ctx context.Context, doors Doors, opts Options) {
	ctx, cancel := context.WithTimeout(ctx, opts.timeout())
	defer cancel()
	client, err := doors.Dial(ctx, p.Endpoint)
	if err != nil {
		if doors.Final != nil && doors.Final(err) {
			p.final = err
		}
		p.explain(ctx, doors, err)
		return
	}
	identified := &identifiedClient{client, p.Endpoint, p.who}
	p.client = identified
	if err := p.status(ctx); err != nil {
		p.Reachable = refused(err)
		p.explain(ctx, doors, err)
		if !p.Reachable {
			return
		}
	}
	if p.Status != nil && p.Status.QuotaBytes == 0 {
		p.Status.QuotaBytes = opts.Quota
	}
	// A serializable list is answered without quorum.
	list, err := client.MemberList(ctx, clientv3.WithSerializable())
	switch {
	case err == nil && !p.identified: // the status was refused
		p.identify(list.Header)
	case err == nil: // behind a proxy any member of the cluster may have answered
		err = identity{cluster: p.who.cluster}.check(p.Endpoint, list.Header)
	}
	identified.who = p.who
	switch {
	case err != nil && p.Learner: // it answers only for itself
		return
	case err != nil:
		p.gap(KindMembers, "list members: %v", err)
		return
	}
	p.list = list
}

// explain notes why the member did not answer as it should, and what helps.
func (p *probe) explain(ctx context.Context, doors Doors, err error) {
	if other, ok := errors.AsType[*OtherMemberError](err); ok {
		p.otherAnswered(other)
		p.Error = err.Error()
		return
	}
	if doors.Explain != nil {
		// The deadline may be what failed: naming the cause gets its own.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		err = doors.Explain(ctx, p.Endpoint, err)
	}
	p.Error, p.hint = strings.TrimPrefix(err.Error(), p.Endpoint+": "), hint.Of(err)
}

// identify takes who answered from the header of the answer.
func (p *probe) identify(h *pb.ResponseHeader) {
	if p.who.check(p.Endpoint, h) != nil || h.GetMemberId() == 0 {
		return
	}
	p.who, p.identified = identity{h.GetMemberId(), h.GetClusterId()}, true
	p.ID, p.IDHex = p.who.member, output.ID(p.who.member)
}

func (p *probe) otherAnswered(e *OtherMemberError) {
	p.OtherAnswers = append(p.OtherAnswers, OtherAnswer{URL: e.URL, MemberID: e.Member, MemberIDHex: output.ID(e.Member), ClusterIDHex: output.ID(e.Cluster)})
}

// lose forgets the member, which does not answer any more.
func (p *probe) lose(err error) {
	p.Reachable, p.identified, p.Status, p.Error = false, false, nil, err.Error()
	if other, ok := errors.AsType[*OtherMemberError](err); ok {
		p.otherAnswered(other)
	}
}

func (p *probe) status(ctx context.Context) error {
	resp, err := p.client.Status(ctx, p.Endpoint)
	if err != nil {
		return err
	}
	p.Reachable = true
	p.identify(resp.Header)
	if !p.Listed {
		p.Learner = resp.IsLearner
	}
	quota := resp.DbSizeQuota
	if p.Status != nil && quota == 0 {
		quota = p.Status.QuotaBytes
	}
	p.Status = statusOf(resp)
	p.Status.QuotaBytes = quota
	return nil
}

func statusOf(resp *clientv3.StatusResponse) *Status {
	s := &Status{
		Version: resp.Version, StorageVersion: resp.StorageVersion,
		LeaderID: resp.Leader, LeaderIDHex: output.ID(resp.Leader),
		Term: resp.RaftTerm, Index: resp.RaftIndex, Applied: resp.RaftAppliedIndex,
		Revision: resp.Header.Revision, Learner: resp.IsLearner,
		SizeBytes: resp.DbSize, InUseBytes: resp.DbSizeInUse, QuotaBytes: resp.DbSizeQuota,
		Alarms: []Alarm{}, Errors: []string{},
	}
	if d := resp.DowngradeInfo; d != nil && d.Enabled {
		s.DowngradeTarget = d.TargetVersion
	}
	for _, e := range resp.Errors {
		if alarm, ok := parseAlarm(e); ok {
			s.Alarms = append(s.Alarms, alarm)
		} else {
			s.Errors = append(s.Errors, e)
		}
	}
	return s
}

// parseAlarm reads an alarm as Status tells it, which is the only way to see
// alarms without quorum: the text form of the message, whose spacing is free.
func parseAlarm(text string) (Alarm, bool) {
	var alarm Alarm
	for field := range strings.FieldsSeq(strings.ReplaceAll(text, ":", ": ")) {
		switch {
		case strings.HasSuffix(field, ":"):
			continue
		case pb.AlarmType_value[field] != 0:
			alarm.Kind = field
		default:
			id, err := strconv.ParseUint(field, 10, 64)
			if err != nil {
				return Alarm{}, false
			}
			alarm.MemberID = id
		}
	}
	return alarm, alarm.Kind != ""
}

// examine gathers what a member shows under use. What runs side by side only
// reads the probe and returns what it found: it is noted when all have ended.
func (p *probe) examine(ctx context.Context, doors Doors, opts Options) {
	if !p.Reachable {
		p.unreachableCerts(ctx, doors, opts)
		return
	}
	var wg sync.WaitGroup
	var (
		metrics      *Metrics
		scrapeErr    error
		reads        *Reads
		certs        []Certificate
		certFailures []error
	)
	// Servers before 3.6 tell their quota in the metrics only.
	if opts.Sample > 0 || p.Status != nil && p.Status.QuotaBytes == 0 {
		wg.Go(func() { metrics, scrapeErr = p.scrape(ctx, doors, opts) })
	} else {
		scrapeErr = errNotWanted
	}
	if !p.Learner {
		wg.Go(func() { reads = p.read(ctx, opts) })
	}
	wg.Go(func() { certs, certFailures = p.handshakes(ctx, doors, opts) })
	wg.Wait()
	p.Metrics, p.Reads, p.Certs = metrics, reads, certs
	if scrapeErr != nil {
		p.gap(KindMetrics, "%v", scrapeErr)
	}
	for _, err := range certFailures {
		p.gap(KindCerts, "%v", err)
	}
	if p.Status != nil && p.Status.QuotaBytes == 0 && p.Metrics != nil {
		p.Status.QuotaBytes = p.Metrics.QuotaBytes
	}
}
