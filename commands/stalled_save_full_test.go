//go:build full

package commands_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/etcdkit/etcdkit/internal/testing/etcdtest"
	"github.com/etcdkit/etcdkit/internal/testing/faultproxy"
	"github.com/etcdkit/etcdkit/internal/testing/s3test"
)

// A save whose store takes nothing holds a read transaction in its member. A
// defragmentation of the whole cluster meanwhile must not wait in that member,
// which would stop it for its clients, and the save must end by itself.
func TestAStalledSaveWhileDefragAllRuns(t *testing.T) {
	servers := etcdtest.StartServers(t, etcdtest.ServerOptions{Members: 3})
	client := etcdtest.Client(t, servers.Endpoints()...)
	etcdtest.Fill(t, client, "/key/", 5000, 12_000)
	server := s3test.Start(t, s3test.Options{})
	proxy := faultproxy.NewHTTP(t, server.URL)
	proxy.Add(faultproxy.Rule{Method: http.MethodPut, Path: "partNumber=", Stall: true})
	bucket := server.Bucket(t)
	server.Setenv(t)
	endpoints := strings.Join(servers.Endpoints(), ",")
	repo := "s3://" + bucket + "/repo/"

	type ended struct {
		code int
		text string
	}
	save := make(chan ended, 1)
	go func() {
		code, _, stderr := run(t, "etcdkit", "snapshot", "save", repo, "--endpoints", endpoints,
			"--s3-endpoint", proxy.URL, "--s3-retry-for", "1s", "--max-duration", "20s", "--quiet")
		save <- ended{code, stderr}
	}()
	etcdtest.Until(t, "the first part to stall", func(context.Context) bool {
		for _, r := range proxy.Requests() {
			if strings.Contains(r.URL.RawQuery, "partNumber=") {
				return true
			}
		}
		return false
	})

	defrag := make(chan ended, 1)
	go func() {
		code, stdout, stderr := run(t, "etcdkit", "defrag-all", "--all", "--endpoints", endpoints, "-w", "json")
		defrag <- ended{code, stdout + stderr}
	}()
	// Every member takes reads and writes all the while.
	var of ended
	for n, running := 0, true; running; n++ {
		select {
		case of = <-defrag:
			running = false
		case <-time.After(100 * time.Millisecond):
			ctx, cancel := context.WithTimeout(t.Context(), 15*time.Second)
			if _, err := client.Put(ctx, fmt.Sprintf("/meanwhile/%d", n), "x"); err != nil {
				t.Errorf("a write meanwhile: %v", err)
			}
			cancel()
		}
	}
	if of.code != 0 {
		t.Errorf("defrag-all: exit code %d\n%s", of.code, of.text)
	}
	of = <-save
	if of.code != 1 || !strings.Contains(of.text, "error:") {
		t.Errorf("the save: exit code %d\n%s", of.code, of.text)
	}
	t.Logf("the save said: %s", of.text)

	proxy.Clear()
	if code, stdout, stderr := run(t, "etcdkit", "snapshot", "list", repo, "--s3-endpoint", server.URL); code != 0 || !strings.Contains(stdout, "no backups") {
		t.Errorf("list: exit code %d\n%s%s; want none", code, stdout, stderr)
	}
	code, stdout, stderr := run(t, "etcdkit", "snapshot", "save", repo, "--endpoints", endpoints, "--s3-endpoint", server.URL)
	if code != 0 {
		t.Errorf("the next save: exit code %d\n%s%s", code, stdout, stderr)
	}
}
