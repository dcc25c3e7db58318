// etcdkit looks after etcd clusters. Called as etcdctl or etcdutl it is a
// drop-in for the program of that name.
package main

import (
	"context"
	"os"

	"github.com/etcdkit/etcdkit/commands"
	"github.com/etcdkit/etcdkit/internal/cli"
	"github.com/etcdkit/etcdkit/internal/config"
	"github.com/etcdkit/etcdkit/internal/start"
)

func main() {
	start.Done()
	os.Exit(commands.Main(context.Background(), config.TakeArgs(), cli.System()))
}
