package ctl

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/etcdkit/etcdkit/internal/output"
)

// endpointStatus is one endpoint's answer, in upstream's JSON. Natively an
// endpoint without an answer is listed with its error.
type endpointStatus struct {
	Endpoint string             `json:"Endpoint"`
	Status   *pb.StatusResponse `json:"Status,omitempty"`
	Error    string             `json:"error,omitempty"`
}

func newEndpointStatusCmd(t *tree, cluster *bool) *cobra.Command {
	cmd := &cobra.Command{
		Use: "status", Short: "Prints out the status of endpoints specified in `--endpoints` flag",
		Long: t.long("When --write-out is set to simple, this command prints out comma-separated status lists for each endpoint.\n"+
			"The items in the lists are endpoint, ID, version, db size, is leader, is learner, raft term, raft index, raft applied index, errors.\n",
			`Shows what each endpoint says of itself: version, database size, leader, raft
progress, errors. As words, the columns are endpoint, ID, version, storage
version, db size, in use, percentage not in use, quota, is leader, is learner,
raft term, raft index, raft applied index, errors, downgrade target version,
downgrade enabled; a table names them.

  etcdkit endpoint status --cluster -w table

Exit codes: 0 all answered, 1 one did not, 2 wrong usage.`),
		RunE: t.run(func(ctx context.Context, args []string) error { return runEndpointStatus(ctx, t, args, cluster) }),
	}
	return t.offer(cmd, output.Table, output.Fields)
}

func runEndpointStatus(ctx context.Context, t *tree, args []string, cluster *bool) error {
	c, targets, err := t.looking(ctx, args, cluster)
	if err != nil {
		return err
	}
	all := make([]endpointStatus, len(targets))
	errs, err := t.visit(ctx, c, targets, func(ctx context.Context, i int, client *clientv3.Client) error {
		resp, err := client.Status(ctx, targets[i])
		all[i] = endpointStatus{Endpoint: targets[i], Status: (*pb.StatusResponse)(resp)}
		return err
	})
	if err != nil {
		return err
	}
	all = answered(t, all, errs, func(i int, s *endpointStatus) {
		s.Endpoint, s.Error = targets[i], errs[i].Error()
		if t.upstream() {
			fmt.Fprintf(t.Err, "Failed to get the status of endpoint %s (%v)\n", targets[i], errs[i])
		}
	})
	if err := t.print(t.statusResult(all)); err != nil {
		return err
	}
	err = t.failed(targets, errs)
	if err != nil && t.upstream() {
		return errTold
	}
	return err
}

// answered marks the failed entries. Upstream leaves them out.
func answered[T any](t *tree, all []T, errs []error, mark func(int, *T)) []T {
	var kept []T
	for i := range all {
		if errs[i] != nil {
			mark(i, &all[i])
			if t.upstream() {
				continue
			}
		}
		kept = append(kept, all[i])
	}
	return kept
}

func (t *tree) statusResult(all []endpointStatus) result {
	table := func() ([]string, [][]string) { return t.statusTable(all) }
	return result{
		json:  all,
		table: table,
		simple: func(w io.Writer) {
			_, rows := table()
			for _, row := range rows {
				fmt.Fprintln(w, strings.Join(row, ", "))
			}
		},
		fields: func(w io.Writer) {
			for _, s := range all {
				t.kvView().status(w, s)
			}
		},
	}
}

func (t *tree) statusTable(all []endpointStatus) ([]string, [][]string) {
	header := []string{
		"endpoint", "ID", "version", "storage version", "db size", "in use", "percentage not in use", "quota", "is leader", "is learner", "raft term",
		"raft index", "raft applied index", "errors", "downgrade target version", "downgrade enabled",
	}
	var rows [][]string
	for _, s := range all {
		if s.Error != "" {
			row := make([]string, len(header))
			row[0], row[13] = s.Endpoint, s.Error
			rows = append(rows, row)
			continue
		}
		r := s.Status
		rows = append(rows, []string{
			s.Endpoint, fmt.Sprintf("%x", r.GetHeader().GetMemberId()), r.GetVersion(), r.GetStorageVersion(),
			humanize.Bytes(uint64(r.GetDbSize())), humanize.Bytes(uint64(r.GetDbSizeInUse())), unusedPercent(r), humanize.Bytes(uint64(r.GetDbSizeQuota())),
			strconv.FormatBool(r.GetLeader() == r.GetHeader().GetMemberId()), strconv.FormatBool(r.GetIsLearner()),
			fmt.Sprint(r.GetRaftTerm()), fmt.Sprint(r.GetRaftIndex()), fmt.Sprint(r.GetRaftAppliedIndex()), strings.Join(r.GetErrors(), ", "),
			r.GetDowngradeInfo().GetTargetVersion(), strconv.FormatBool(r.GetDowngradeInfo().GetEnabled()),
		})
	}
	return header, rows
}

func unusedPercent(r *pb.StatusResponse) string {
	if r.GetDbSize() == 0 {
		return "0%" // upstream divides by it
	}
	return fmt.Sprintf("%d%%", 100-r.GetDbSizeInUse()*100/r.GetDbSize())
}

func (v kvView) status(w io.Writer, s endpointStatus) {
	if s.Error != "" {
		fmt.Fprintf(w, "\"Endpoint\" : %q\n\"Error\" : %q\n\n", s.Endpoint, s.Error)
		return
	}
	r := s.Status
	v.header(w, r.GetHeader())
	fmt.Fprintf(w, "\"Version\" : %q\n", r.GetVersion())
	fmt.Fprintf(w, "\"StorageVersion\" : %q\n", r.GetStorageVersion())
	fmt.Fprintln(w, `"DBSize" :`, r.GetDbSize())
	fmt.Fprintln(w, `"DBSizeInUse" :`, r.GetDbSizeInUse())
	fmt.Fprintln(w, `"DBSizeQuota" :`, r.GetDbSizeQuota())
	fmt.Fprintln(w, `"Leader" :`, r.GetLeader())
	fmt.Fprintln(w, `"IsLearner" :`, r.GetIsLearner())
	fmt.Fprintln(w, `"RaftIndex" :`, r.GetRaftIndex())
	fmt.Fprintln(w, `"RaftAppliedIndex" :`, r.GetRaftAppliedIndex())
	fmt.Fprintln(w, `"Errors" :`, r.GetErrors())
	fmt.Fprintf(w, "\"Endpoint\" : %q\n", s.Endpoint)
	fmt.Fprintf(w, "\"DowngradeTargetVersion\" : %q\n", r.GetDowngradeInfo().GetTargetVersion())
	fmt.Fprintln(w, `"DowngradeEnabled" :`, r.GetDowngradeInfo().GetEnabled())
	fmt.Fprintln(w)
}
