// Command cmd writes a large etcd snapshot file, for trials by hand.
//
//	go run ./internal/testing/gendb/cmd -keys 1000000 -size 1024 -out big.db
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"

	"github.com/etcdkit/etcdkit/internal/testing/gendb"
)

func main() {
	var o gendb.Options
	flag.IntVar(&o.Keys, "keys", 100_000, "keys")
	flag.IntVar(&o.ValueBytes, "size", 1024, "bytes of a value")
	flag.IntVar(&o.Rewrites, "rewrites", 0, "how often each key is written anew")
	flag.IntVar(&o.SecretEvery, "secret-every", 10, "every so many keys one is a Secret")
	flag.Uint64Var(&o.Seed, "seed", 1, "other seeds make other values")
	flag.BoolVar(&o.NoTrailer, "no-trailer", false, "leave the SHA-256 at the end out")
	out := flag.String("out", "big.db", "file to write")
	flag.Parse()

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := gendb.Write(ctx, *out, o); err != nil {
		fmt.Fprintln(os.Stderr, "gendb:", err)
		os.Exit(1)
	}
}
