package faultproxy_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/etcdkit/etcdkit/internal/testing/certs"
	"github.com/etcdkit/etcdkit/internal/testing/faultproxy"
)

// echo returns the address of a server that sends back what it gets.
func echo(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				_, _ = io.Copy(c, c)
				_ = c.Close()
			}()
		}
	}()
	return l.Addr().String()
}

func dial(t *testing.T, addr string) *net.TCPConn {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c.(*net.TCPConn)
}

const megabyte = 1 << 20

// long is enough for what comes at all.
const long = time.Minute

// talk sends a megabyte and returns how much of it came back, and whether the
// other side hung up. It waits long for what is wanted, and patience for more.
func talk(t *testing.T, addr string, want int64, patience time.Duration) (got int64, hungUp bool) {
	t.Helper()
	c := dial(t, addr)
	go func() {
		_, _ = c.Write(bytes.Repeat([]byte{'x'}, megabyte))
		_ = c.CloseWrite()
	}()
	_ = c.SetReadDeadline(time.Now().Add(long))
	got, err := io.CopyN(io.Discard, c, want)
	if err == nil {
		var more int64
		_ = c.SetReadDeadline(time.Now().Add(patience))
		more, err = io.Copy(io.Discard, c)
		got += more
	}
	var timeout net.Error
	return got, !errors.As(err, &timeout) || !timeout.Timeout()
}

func TestTCPFaults(t *testing.T) {
	const short = 500 * time.Millisecond
	for name, tc := range map[string]struct {
		faults   faultproxy.Faults
		patience time.Duration
		want     int64
		hungUp   bool
	}{
		"none":                {patience: long, want: megabyte, hungUp: true},
		"answer cut":          {faults: faultproxy.Faults{ToClient: faultproxy.Flow{CutAfter: 70_001}}, patience: long, want: 70_001, hungUp: true},
		"answer cut at once":  {faults: faultproxy.Faults{ToClient: faultproxy.Flow{CutAfter: faultproxy.AtOnce}}, patience: long, want: 0, hungUp: true},
		"answer stalls":       {faults: faultproxy.Faults{ToClient: faultproxy.Flow{StallAfter: 100}}, patience: short, want: 100},
		"request stalls":      {faults: faultproxy.Faults{ToServer: faultproxy.Flow{StallAfter: 9}}, patience: short, want: 9},
		"refused":             {faults: faultproxy.Faults{Refuse: true}, patience: long, hungUp: true},
		"swallowed":           {faults: faultproxy.Faults{Swallow: true}, patience: short},
		"slow but whole":      {faults: faultproxy.Faults{ToServer: faultproxy.Flow{Rate: 20 * megabyte, Delay: time.Millisecond}}, patience: long, want: megabyte, hungUp: true},
		"too slow to be done": {faults: faultproxy.Faults{ToClient: faultproxy.Flow{Delay: time.Hour}}, patience: short},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := faultproxy.NewTCP(t, "tcp://"+echo(t))
			p.Set(tc.faults)
			got, hungUp := talk(t, p.Addr(), tc.want, tc.patience)
			// A cut may reset the connection, and a reset overtakes bytes.
			if tc.hungUp && tc.want < megabyte && got < tc.want {
				got = tc.want
			}
			if got != tc.want || hungUp != tc.hungUp {
				t.Errorf("got %d bytes back, hung up %v; want %d, %v", got, hungUp, tc.want, tc.hungUp)
			}
		})
	}
}

func TestFaultsReachOpenConnectionsAndPass(t *testing.T) {
	p := faultproxy.NewTCP(t, echo(t))
	c := dial(t, p.Addr())
	ask := func(answers int, patience time.Duration) error {
		_ = c.SetDeadline(time.Now().Add(patience))
		if _, err := c.Write([]byte("a")); err != nil {
			return err
		}
		_, err := io.ReadFull(c, make([]byte, answers))
		return err
	}
	if err := ask(1, time.Minute); err != nil {
		t.Fatal(err)
	}
	p.Set(faultproxy.Faults{ToClient: faultproxy.Flow{StallAfter: faultproxy.AtOnce}})
	if err := ask(1, 200*time.Millisecond); err == nil {
		t.Error("an answer came through a stalled connection")
	}
	p.Set(faultproxy.Faults{})
	if err := ask(2, time.Minute); err != nil { // the stalled one too
		t.Errorf("after the stall: %v", err)
	}
	p.CutAll()
	if err := ask(1, time.Minute); err == nil {
		t.Error("an answer came through a cut connection")
	}
	if p.Accepted() != 1 {
		t.Errorf("%d connections, want 1", p.Accepted())
	}
}

func fetch(ctx context.Context, c *http.Client, method, url, body string) string {
	req, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		return err.Error()
	}
	req.Header.Set("X-Amz-Server-Side-Encryption", "AES256")
	resp, err := c.Do(req)
	if err != nil {
		return "no answer"
	}
	defer resp.Body.Close()
	got, err := io.ReadAll(resp.Body)
	if err != nil {
		return fmt.Sprintf("%d, then cut after %d", resp.StatusCode, len(got))
	}
	return fmt.Sprintf("%d %.20s", resp.StatusCode, got)
}

func TestHTTPRules(t *testing.T) {
	for name, tc := range map[string]struct {
		rule    faultproxy.Rule
		method  string
		answers []string // of three requests
	}{
		"none":                  {method: "GET", answers: []string{"200 hello ", "200 hello ", "200 hello "}},
		"two errors, then fine": {rule: faultproxy.Rule{Status: 503, Times: 2}, method: "PUT", answers: []string{"503 <?xml version=\"1.0\" ", "503 <?xml version=\"1.0\" ", "200 hello body"}},
		"an error in between":   {rule: faultproxy.Rule{Status: 500, Skip: 1, Times: 1}, method: "GET", answers: []string{"200 hello ", "500 <?xml version=\"1.0\" ", "200 hello "}},
		"another method":        {rule: faultproxy.Rule{Method: "DELETE", Status: 403}, method: "GET", answers: []string{"200 hello ", "200 hello ", "200 hello "}},
		"another path":          {rule: faultproxy.Rule{Path: "versionId", Status: 403}, method: "GET", answers: []string{"200 hello ", "200 hello ", "200 hello "}},
		"the query":             {rule: faultproxy.Rule{Path: "uploads", Status: 403}, method: "POST", answers: []string{"403 <?xml version=\"1.0\" ", "403 <?xml version=\"1.0\" ", "403 <?xml version=\"1.0\" "}},
		"a cut answer":          {rule: faultproxy.Rule{CutBody: 3, Times: 1}, method: "GET", answers: []string{"200, then cut after 3", "200 hello ", "200 hello "}},
		"a cut request":         {rule: faultproxy.Rule{CutSend: 2, Times: 1}, method: "PUT", answers: []string{"no answer", "200 hello body", "200 hello body"}},
		"a stalled answer":      {rule: faultproxy.Rule{Stall: true, Times: 1}, method: "DELETE", answers: []string{"no answer", "200 hello ", "200 hello "}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				body, err := io.ReadAll(r.Body)
				if err != nil {
					panic(http.ErrAbortHandler)
				}
				_, _ = fmt.Fprintf(w, "hello %s", body)
			}))
			t.Cleanup(server.Close)
			p := faultproxy.NewHTTP(t, server.URL)
			p.Add(tc.rule)
			body := ""
			if tc.method == "PUT" {
				body = "body"
			}
			var answers []string
			for range tc.answers {
				patience := time.Minute
				if tc.rule.Stall && answers == nil {
					patience = 200 * time.Millisecond
				}
				ctx, cancel := context.WithTimeout(t.Context(), patience)
				answers = append(answers, fetch(ctx, &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}, tc.method, p.URL+"/a?uploads", body))
				cancel()
			}
			if !slices.Equal(answers, tc.answers) {
				t.Errorf("got %q, want %q", answers, tc.answers)
			}
			for _, r := range p.Requests() {
				if r.Header.Get("X-Amz-Server-Side-Encryption") != "AES256" || r.Method != tc.method {
					t.Errorf("recorded %s %v, want the method and headers sent", r.Method, r.Header)
				}
			}
		})
	}
}

func TestHTTPSOnBothSides(t *testing.T) {
	ca := certs.NewCA(t)
	behind := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, r.Host)
	}))
	t.Cleanup(behind.Close)
	p := faultproxy.NewHTTPS(t, faultproxy.NewHTTPS(t, behind.URL, ca).URL, ca)
	c := &http.Client{Transport: &http.Transport{TLSClientConfig: ca.ClientConfig(t)}}
	host := strings.TrimPrefix(p.URL, "https://")
	if got := fetch(t.Context(), c, "GET", p.URL, ""); got != "200 "+host {
		t.Errorf("got %q, want the host that the client asked for, %s", got, host)
	}
}
