package ctl

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/etcdkit/etcdkit/internal/cli"
	"github.com/etcdkit/etcdkit/internal/etcd"
	"github.com/etcdkit/etcdkit/internal/hint"
	"github.com/etcdkit/etcdkit/internal/output"
)

// endpointHealth is what is found of one endpoint, in upstream's JSON.
type endpointHealth struct {
	Endpoint string `json:"endpoint"`
	Health   bool   `json:"health"`
	Took     string `json:"took"`
	Error    string `json:"error,omitempty"`

	err  error
	took time.Duration
}

// nativeHealth adds what programs need.
type nativeHealth struct {
	endpointHealth
	TookSeconds float64 `json:"tookSeconds"`
	Hint        string  `json:"hint,omitempty"`
}

func newEndpointHealthCmd(t *tree, cluster *bool) *cobra.Command {
	cmd := &cobra.Command{
		Use: "health", Short: "Checks the healthiness of endpoints specified in `--endpoints` flag",
		Long: t.long("", `Asks each endpoint for a read that needs a majority of the cluster, and for
armed alarms. A user who may not read is healthy all the same: the refusal took
the same way. For a verdict on the whole cluster with evidence see
"etcdkit health".

  etcdkit endpoint health --cluster

Exit codes: 0 all are healthy; 1 the members could not be listed; 2 wrong usage;
3 an endpoint is not healthy; 4 none could be reached, or none may be asked.`),
		RunE: t.run(func(ctx context.Context, args []string) error { return runEndpointHealth(ctx, t, args, cluster) }),
	}
	return t.offer(cmd, output.Table, output.Fields)
}

func runEndpointHealth(ctx context.Context, t *tree, args []string, cluster *bool) error {
	c, targets, err := t.looking(ctx, args, cluster)
	if err != nil {
		return err
	}
	if t.upstream() {
		c.Log = t.upstreamLog().Named("client")
		if _, err := c.Client(); err != nil {
			return &codeError{exitBadArgs, err}
		}
	}
	all := make([]endpointHealth, len(targets))
	var wg sync.WaitGroup
	for i, ep := range targets {
		wg.Go(func() { all[i] = t.askHealth(ctx, c.At(ep)) })
	}
	wg.Wait()
	if err := context.Cause(ctx); err != nil {
		return err
	}
	if err := t.print(t.healthResult(all)); err != nil {
		return err
	}
	return t.judgeHealth(all)
}

// askHealth asks one endpoint.
func (t *tree) askHealth(ctx context.Context, c etcd.Config) endpointHealth {
	h := endpointHealth{Endpoint: c.Endpoints[0]}
	client, err := t.dial(ctx, c)
	if err != nil {
		h.fail(err)
		return h
	}
	defer client.Close()
	start := time.Now()
	ctx, cancel := t.Timeout(ctx)
	defer cancel()
	_, err = client.Get(ctx, "health")
	h.took = time.Since(start)
	h.Took = h.took.String()
	// A refused read came from a leader too.
	if err != nil && !errors.Is(err, rpctypes.ErrPermissionDenied) {
		if !t.upstream() {
			err = etcd.Diagnose(context.WithoutCancel(ctx), c, err)
		}
		h.fail(err)
		return h
	}
	alarms, err := client.AlarmList(ctx)
	switch {
	case err != nil && t.upstream():
		h.Error = "Unable to fetch the alarm list"
	case err != nil:
		h.fail(fmt.Errorf("list alarms: %w", err))
	case len(alarms.Alarms) > 0:
		h.Error = alarmText(alarms)
		h.err = errors.New(h.Error)
	default:
		h.Health = true
	}
	return h
}

func (h *endpointHealth) fail(err error) { h.err, h.Error = err, err.Error() }

func alarmText(r *clientv3.AlarmResponse) string {
	text := "Active Alarm(s): "
	for _, a := range r.Alarms {
		name := "UNKNOWN"
		if a.GetAlarm() == pb.AlarmType_NOSPACE || a.GetAlarm() == pb.AlarmType_CORRUPT {
			name = a.GetAlarm().String()
		}
		text += name + " "
	}
	return text
}

// judgeHealth is the command's verdict.
func (t *tree) judgeHealth(all []endpointHealth) error {
	bad, unseen := 0, 0
	var first error
	for _, h := range all {
		switch {
		case h.Error == "":
			continue
		case unseenHealth(h.err):
			unseen++
		}
		bad++
		if first == nil {
			first = h.err
		}
	}
	switch {
	case bad == 0:
		return nil
	case t.upstream():
		return errors.New("unhealthy cluster")
	case unseen == len(all):
		return cli.CannotTell(hint.With(fmt.Errorf("%s could not be asked", output.Count(unseen, "endpoint")), "%s", hintOr(first, "check --endpoints")))
	}
	return cli.Verdict(hint.With(fmt.Errorf("%d of %s not healthy", bad, output.Count(len(all), "endpoint")), "%s", hintOr(first, `"etcdkit health" looks at the whole cluster`)))
}

// unseenHealth reports whether an endpoint could not be asked at all, which
// says nothing about its health.
func unseenHealth(err error) bool {
	_, unreachable := errors.AsType[*etcd.UnreachableError](err)
	return unreachable || deniedHealth(err)
}

// deniedHealth reports whether an endpoint refused to answer this user.
func deniedHealth(err error) bool {
	for _, denied := range []error{rpctypes.ErrUserEmpty, rpctypes.ErrAuthFailed, rpctypes.ErrInvalidAuthToken, rpctypes.ErrAuthOldRevision} {
		if errors.Is(err, denied) {
			return true
		}
	}
	return false
}

func hintOr(err error, other string) string {
	if h := hint.Of(err); h != "" {
		return h
	}
	return other
}

func (t *tree) healthResult(all []endpointHealth) result {
	r := result{
		json:   all,
		simple: func(w io.Writer) { t.healthSimple(w, all) },
		fields: func(w io.Writer) {
			for _, h := range all {
				fmt.Fprintf(w, "\"Endpoint\" : %q\n", h.Endpoint)
				fmt.Fprintln(w, `"Health" :`, h.Health)
				fmt.Fprintln(w, `"Took" :`, h.Took)
				fmt.Fprintln(w, `"Error" :`, h.Error)
				fmt.Fprintln(w)
			}
		},
		table: func() ([]string, [][]string) {
			var rows [][]string
			for _, h := range all {
				rows = append(rows, []string{h.Endpoint, strconv.FormatBool(h.Health), h.Took, h.Error})
			}
			return []string{"endpoint", "health", "took", "error"}, rows
		},
	}
	native := make([]nativeHealth, len(all))
	for i, h := range all {
		native[i] = nativeHealth{h, h.took.Seconds(), hint.Of(h.err)}
	}
	r.native = native
	return r
}

// healthSimple writes a line an endpoint. Upstream has those of the unhealthy
// on standard error.
func (t *tree) healthSimple(w io.Writer, all []endpointHealth) {
	for _, h := range all {
		switch {
		case h.Error == "":
			fmt.Fprintf(w, "%s is healthy: successfully committed proposal: took = %s\n", h.Endpoint, h.Took)
		case t.upstream():
			fmt.Fprintf(t.Err, "%s is unhealthy: failed to commit proposal: %s\n", h.Endpoint, h.Error)
		case deniedHealth(h.err):
			fmt.Fprintf(w, "%s was not judged, it refused to answer: %s\n", h.Endpoint, h.Error)
		default:
			fmt.Fprintf(w, "%s is unhealthy: %s\n", h.Endpoint, strings.TrimPrefix(h.Error, h.Endpoint+": "))
		}
	}
}
