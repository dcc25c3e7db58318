package commands_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/spf13/cobra"
	"google.golang.org/grpc/grpclog"

	"github.com/etcdkit/etcdkit/commands"
	"github.com/etcdkit/etcdkit/internal/cli"
	"github.com/etcdkit/etcdkit/internal/config"
	"github.com/etcdkit/etcdkit/internal/testing/etcdtest"
	"github.com/etcdkit/etcdkit/internal/testing/process"
)

// The test binary is installed under each of its names, so that scripts go
// through the users' argv[0] dispatch.
func TestMain(m *testing.M) {
	run := func() {
		env := cli.System()
		env.GRPCLog = grpclog.SetLoggerV2 // as main does
		os.Exit(commands.Main(context.Background(), config.TakeArgs(), env))
	}
	programs := map[string]func(){"etcdkit": run, "etcdctl": run, "etcdutl": run}
	cobra.EnablePrefixMatching = true // before tests run side by side that read it
	if programs[filepath.Base(os.Args[0])] == nil {
		process.HeedSignals()
	}
	testscript.Main(m, programs)
}

// patience is how long a command waits for an answer in a test that is not about
// how long: the default is too short for a busy machine.
const patience = "2m"

// bounded ends a process that a test would wait for for ever.
func bounded(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// installed puts the test binary into dir under etcdkit's name, for tests that
// start it as a process of its own.
func installed(t *testing.T, dir string) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	etcdkit := filepath.Join(dir, "etcdkit")
	if err := os.Symlink(self, etcdkit); err != nil {
		t.Fatal(err)
	}
	return etcdkit
}

// TestScripts runs the command lines of testdata/script. Each script has its
// own one-member cluster at $ENDPOINT when it asks for one with a first line
// "# cluster".
func TestScripts(t *testing.T) {
	t.Parallel()
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		UpdateScripts:       os.Getenv("UPDATE_SCRIPTS") != "",
		Setup: func(env *testscript.Env) error {
			env.Values[tbKey{}] = env.T()
			// Nobody's own configuration, journal or terminal.
			env.Setenv("HOME", env.WorkDir)
			env.Setenv("XDG_STATE_HOME", env.WorkDir+"/state")
			env.Setenv("ETCDCTL_COMMAND_TIMEOUT", patience)
			// A real Kubernetes keyspace.
			file, err := filepath.Abs("../snapshot/testdata/kubernetes.db")
			env.Setenv("SNAPSHOT", file)
			return err
		},
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"exits":   exits,
			"cluster": cluster,
		},
	})
}

// cluster starts a throwaway cluster: "cluster [MEMBERS]". Its endpoints are in
// $ENDPOINTS, each alone in $ENDPOINT1 and so on, and etcdkit uses them;
// $DATADIR1 and so on are where they keep their data. The members are processes:
// those of one process would share their metrics with every other test's, and
// what they show would be about somebody else.
func cluster(ts *testscript.TestScript, _ bool, args []string) {
	opts := etcdtest.ServerOptions{Members: 1}
	if len(args) == 1 {
		n, err := strconv.Atoi(args[0])
		ts.Check(err)
		// With etcd's second, a busy machine has elections of its own accord.
		opts.Members, opts.Flags = n, []string{"--heartbeat-interval=500", "--election-timeout=5000"}
	}
	c := etcdtest.StartServers(ts.Value(tbKey{}).(testing.TB), opts)
	ts.Setenv("ENDPOINTS", strings.Join(c.Endpoints(), ","))
	ts.Setenv("ETCDCTL_ENDPOINTS", strings.Join(c.Endpoints(), ","))
	for i, m := range c.Members {
		ts.Setenv("ENDPOINT"+strconv.Itoa(i+1), m.Endpoint)
		ts.Setenv("DATADIR"+strconv.Itoa(i+1), m.DataDir)
	}
}

// tbKey finds a script's test among its values.
type tbKey struct{}

// exits runs a command and compares its exit code: "exits CODE CMD ARG...".
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE CMD [ARG...]")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	err = ts.Exec(args[1], args[2:]...)
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		got = exit.ExitCode()
	} else if err != nil {
		ts.Fatalf("%v", err)
	}
	if got != want {
		ts.Fatalf("exit code %d, want %d", got, want)
	}
}
