// etcdkit looks after etcd clusters. Called as etcdctl or etcdutl it is a
// drop-in for the program of that name.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/etcdkit/etcdkit/commands"
	"github.com/etcdkit/etcdkit/internal/cli"
	"github.com/etcdkit/etcdkit/internal/config"
	"github.com/etcdkit/etcdkit/internal/start"
)

func main() {
	start.Done()
	signal.Ignore(syscall.SIGPIPE)                    // a broken standard error must not kill an upload
	ctx, _ := cli.NotifyContext(context.Background()) // a second signal kills
	os.Exit(commands.Main(ctx, config.TakeArgs(), cli.System()))
}
