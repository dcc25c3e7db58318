// Command build builds upstream programs and prints where they are, one
// program and its path a line: all of them, or those named.
//
//	go run ./internal/testing/reference/build [PROGRAM...]
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"time"

	"github.com/etcdkit/etcdkit/internal/testing/reference"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	programs := reference.All()
	if len(os.Args) > 1 {
		programs = nil
		for _, arg := range os.Args[1:] {
			programs = append(programs, reference.Program(arg))
		}
	}
	for _, p := range programs {
		start := time.Now()
		path, err := reference.Build(ctx, p)
		if err != nil {
			fmt.Fprintln(os.Stderr, "reference:", err)
			os.Exit(1)
		}
		fmt.Println(p, path)
		if took := time.Since(start); took > time.Second {
			fmt.Fprintf(os.Stderr, "reference: built %s in %s\n", p, took.Round(time.Second))
		}
	}
}
