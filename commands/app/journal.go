package app

import (
	"crypto/rand"
	"encoding/hex"
	"os"
	"path/filepath"
	"strconv"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/etcdkit/etcdkit/internal/cli"
	"github.com/etcdkit/etcdkit/internal/etcd"
	"github.com/etcdkit/etcdkit/internal/journal"
)

// mutatesMark is the annotation of commands that change a cluster. Its value is
// how many of their arguments are keys or members, which the journal may hold.
const mutatesMark = "etcdkit_mutates"

// Mutates marks cmd as one that changes a cluster, so that its runs are noted
// in the journal with its first arguments.
func Mutates(cmd *cobra.Command, arguments int) {
	if cmd.Annotations == nil {
		cmd.Annotations = map[string]string{}
	}
	cmd.Annotations[mutatesMark] = strconv.Itoa(arguments)
}

// note writes the run's beginning into the journal, and returns what writes
// its end. A journal that cannot be written is a warning: the cluster matters
// more.
func (a *App) note(cmd *cobra.Command, args []string) func(error) {
	mark := cmd.Annotations[mutatesMark]
	if mark == "" || a.Dialect != cli.Native || a.Global.NoJournal || dryRun(cmd) {
		return func(error) {}
	}
	dir := a.StateDir()
	n, _ := strconv.Atoi(mark)
	id := make([]byte, 4)
	_, _ = rand.Read(id) // never fails
	began := a.Now()
	entry := journal.Entry{
		Time: began.UTC(), Run: hex.EncodeToString(id), Event: journal.Begin, Command: cmd.CommandPath(),
		Arguments: args[:min(n, len(args))], Flags: given(cmd), Endpoints: etcd.Shown(a.Global.Conn.Endpoints),
		User: a.operator(), PID: os.Getpid(),
	}
	if err := journal.Append(dir, entry); err != nil {
		a.Warn("%v", err)
		return func(error) {}
	}
	if who := cli.WritableByOthers(filepath.Join(dir, journal.File)); who != "" {
		a.Remind("journal %s: %s, who can change what it says", filepath.Join(dir, journal.File), who)
	}
	return func(err error) {
		code := ExitOK
		if err != nil {
			code = a.exitCode(err)
		}
		entry.Event, entry.ExitCode, entry.TookSeconds = journal.End, &code, a.Now().Sub(began).Seconds()
		entry.Time = a.Now().UTC()
		if a.conn != nil {
			entry.Endpoints = etcd.Shown(a.conn.Endpoints)
		}
		if err := journal.Append(dir, entry); err != nil {
			a.Warn("%v", err)
		}
	}
}

// operator is who ran the command, also behind sudo.
func (a *App) operator() string {
	for _, name := range []string{"SUDO_USER", "USER", "LOGNAME", "USERNAME"} {
		if user := a.Getenv(name); user != "" {
			return user
		}
	}
	return strconv.Itoa(os.Getuid())
}

func dryRun(cmd *cobra.Command) bool {
	f := cmd.Flags().Lookup("dry-run")
	return f != nil && f.Value.String() == "true"
}

// given are the names of the flags that were typed.
func given(cmd *cobra.Command) (names []string) {
	cmd.Flags().Visit(func(f *pflag.Flag) { names = append(names, f.Name) })
	return names
}
