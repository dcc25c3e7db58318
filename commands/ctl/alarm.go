package ctl

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/etcdkit/etcdkit/internal/output"
)

func newAlarmCmd(t *tree) *cobra.Command {
	list := &cobra.Command{
		Use: "list", Short: "Lists all alarms",
		Long: t.long("", `Lists the alarms that are armed, each with the member that raised it. NOSPACE
refuses writes, CORRUPT says that a member's data differs from the others'.

  etcdkit alarm list

Exit codes: 0 listed, also when there is none; 1 failed; 2 wrong usage.`),
		RunE: t.run(func(ctx context.Context, args []string) error {
			return runAlarm(ctx, t, "list", args, func(ctx context.Context, c *clientv3.Client) (*clientv3.AlarmResponse, error) {
				return c.AlarmList(ctx)
			})
		}),
	}
	disarm := &cobra.Command{
		Use: "disarm", Short: "Disarms all alarms",
		Long: t.long("", `Disarms all alarms and shows those that were armed. It does not remove their
cause: with NOSPACE, free space first ("etcdkit alarm recover" does both).

  etcdkit alarm disarm

Exit codes: 0 disarmed, also when there was none; 1 failed; 2 wrong usage.`),
		RunE: t.run(func(ctx context.Context, args []string) error {
			return runAlarm(ctx, t, "disarm", args, func(ctx context.Context, c *clientv3.Client) (*clientv3.AlarmResponse, error) {
				return c.AlarmDisarm(ctx, &clientv3.AlarmMember{})
			})
		}),
	}
	return t.group("alarm <subcommand>", "Alarm related commands. Use `etcdctl alarm --help` to see subcommands", "Alarm related commands", groupMaintenance,
		t.offer(disarm, output.Fields, output.Protobuf), t.offer(list, output.Table, output.Fields, output.Protobuf))
}

func runAlarm(ctx context.Context, t *tree, name string, args []string, ask func(context.Context, *clientv3.Client) (*clientv3.AlarmResponse, error)) error {
	if len(args) != 0 {
		return badArgs("alarm %s command accepts no arguments", name)
	}
	return t.request(ctx, func(ctx context.Context, client *clientv3.Client) error {
		resp, err := ask(ctx, client)
		if err != nil {
			return err
		}
		return t.print(t.alarmResult((*pb.AlarmResponse)(resp)))
	})
}

func (t *tree) alarmResult(r *pb.AlarmResponse) result {
	v := t.kvView()
	return result{
		json: r, proto: r,
		simple: func(w io.Writer) { t.alarmSimple(w, r) },
		fields: func(w io.Writer) {
			v.header(w, r.GetHeader())
			for _, a := range r.GetAlarms() {
				fmt.Fprintln(w, `"MemberID" :`, v.member(a.GetMemberID()))
				fmt.Fprintln(w, `"AlarmType" :`, a.GetAlarm())
				fmt.Fprintln(w)
			}
		},
		table: t.nativeTable(func() ([]string, [][]string) {
			var rows [][]string
			for _, a := range r.GetAlarms() {
				rows = append(rows, []string{output.ID(a.GetMemberID()), a.GetAlarm().String()})
			}
			return []string{"member", "alarm"}, rows
		}),
	}
}

// alarmSimple writes an alarm a line. Upstream's form is the debug text of a
// protobuf message, with one space or two from build to build.
func (t *tree) alarmSimple(w io.Writer, r *pb.AlarmResponse) {
	for _, a := range r.GetAlarms() {
		if t.upstream() {
			fmt.Fprintf(w, "memberID:%d alarm:%s\n", a.GetMemberID(), a.GetAlarm())
			continue
		}
		fmt.Fprintf(w, "%s %s\n", output.ID(a.GetMemberID()), a.GetAlarm())
	}
}
