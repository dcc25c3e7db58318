// etcdkit looks after etcd clusters. Called as etcdctl or etcdutl it is a
// drop-in for the program of that name.
package main

import (
	"context"
	"os"

	"google.golang.org/grpc/grpclog"

	"github.com/etcdkit/etcdkit/commands"
	"github.com/etcdkit/etcdkit/internal/cli"
	"github.com/etcdkit/etcdkit/internal/config"
	"github.com/etcdkit/etcdkit/internal/start"
)

func main() {
	start.Done()
	env := cli.System()
	env.GRPCLog = grpclog.SetLoggerV2
	os.Exit(commands.Main(context.Background(), config.TakeArgs(), env))
}
