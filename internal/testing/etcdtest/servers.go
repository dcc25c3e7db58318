package etcdtest

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/bcrypt"

	"github.com/etcdkit/etcdkit/internal/embedded"
	"github.com/etcdkit/etcdkit/internal/testing/certs"
	"github.com/etcdkit/etcdkit/internal/testing/process"
	"github.com/etcdkit/etcdkit/internal/testing/reference"
)

// ServerOptions describes a cluster of upstream's etcd as processes. The zero
// value is one member of the newest version over plain HTTP.
type ServerOptions struct {
	Program reference.Program // "" means reference.Etcd37
	Members int               // 0 means 1

	CA          *certs.CA // if set, clients are served over TLS
	ClientCerts bool      // and must show a certificate of CA
	PeerTLS     bool      // and so do the members with each other

	Flags     []string // added to every member's command line
	Advertise []string // client URL of each member, in the place of where it listens
	// WALBeside puts every log into a folder beside the data directory.
	WALBeside bool
	Fsync     bool // off, data is lost with the machine, not with the process
}

// Servers is a cluster of processes that ends with the test.
type Servers struct {
	Members []*Server

	opts  ServerOptions
	probe *http.Client
}

// Server is one member: a process that can be killed, paused and started
// again on the same ports and data directory.
type Server struct {
	Name     string
	Endpoint string // client URL
	PeerURL  string
	DataDir  string // does not exist before the first start
	WALDir   string // "" where the log is in the data directory

	t       testing.TB
	cluster *Servers
	path    string
	args    []string
	logFile string

	process *process.Process // nil while not running
}

// StartServers starts a new cluster and waits until every member serves.
func StartServers(t testing.TB, opts ServerOptions) *Servers {
	t.Helper()
	s := NewServers(t, opts)
	s.Start()
	return s
}

// NewServers describes a cluster that is not running yet, so that its data
// directories can be filled first, by a restore for example.
func NewServers(t testing.TB, opts ServerOptions) *Servers {
	t.Helper()
	if opts.Program == "" {
		opts.Program = reference.Etcd37
	}
	s := &Servers{opts: opts, probe: probe(t, opts.CA)}
	path := reference.Path(t, opts.Program)
	dir := t.TempDir()
	for i := range max(opts.Members, 1) {
		name := fmt.Sprintf("m%d", i+1)
		s.Members = append(s.Members, &Server{
			Name:     name,
			Endpoint: scheme(opts.CA != nil) + ReservePort(t),
			PeerURL:  scheme(opts.PeerTLS) + ReservePort(t),
			DataDir:  filepath.Join(dir, name+".etcd"),
			t:        t, cluster: s, path: path, logFile: filepath.Join(dir, name+".log"),
		})
	}
	for _, m := range s.Members {
		if opts.WALBeside {
			m.WALDir = filepath.Join(dir, m.Name+".wal")
		}
		m.args = s.argsOf(t, m)
	}
	return s
}

// InitialCluster returns the members as --initial-cluster wants them.
func (s *Servers) InitialCluster() string {
	var all []string
	for _, m := range s.Members {
		all = append(all, m.Name+"="+m.PeerURL)
	}
	return strings.Join(all, ",")
}

// Endpoints returns the client URL of every member, in member order.
func (s *Servers) Endpoints() []string {
	var all []string
	for _, m := range s.Members {
		all = append(all, m.Endpoint)
	}
	return all
}

// Start starts all members side by side and waits until each serves
// linearizable reads.
func (s *Servers) Start() {
	for _, m := range s.Members {
		m.run()
	}
	for _, m := range s.Members {
		m.t.Helper()
		// A restored or full cluster may have an alarm raised: that is the
		// test's business.
		m.await("/health?exclude=NOSPACE&exclude=CORRUPT")
	}
}

// Start starts the member and waits until it answers clients. It may lack a
// quorum then.
func (m *Server) Start() {
	m.t.Helper()
	m.run()
	m.await("/version")
}

// Launch starts the member and waits for nothing: one that its cluster refuses
// never answers.
func (m *Server) Launch() {
	m.t.Helper()
	m.run()
}

// Kill ends the process at once, as a power cut would.
func (m *Server) Kill() {
	m.t.Helper()
	m.running().Kill()
	m.process = nil
}

// Stop asks the process to end, and waits until it has.
func (m *Server) Stop() {
	m.t.Helper()
	m.running().Stop()
	m.process = nil
}

// Pause halts the process without ending it: its connections stay open, and
// nothing is answered any more.
func (m *Server) Pause() {
	m.t.Helper()
	m.running().Pause()
}

// Resume lets a paused process go on.
func (m *Server) Resume() {
	m.t.Helper()
	m.running().Resume()
}

// Log returns what the running member has logged, in earlier runs too.
func (m *Server) Log() string {
	m.t.Helper()
	return m.running().Log()
}

func (m *Server) running() *process.Process {
	m.t.Helper()
	if m.process == nil {
		m.t.Fatalf("member %s is not running", m.Name)
	}
	return m.process
}

func (m *Server) run() {
	m.t.Helper()
	if m.process != nil {
		m.t.Fatalf("start member %s: it is running", m.Name)
	}
	m.process = process.Start(m.t, process.Command{Path: m.path, Args: m.args, Env: cleanEnv(), Log: m.logFile})
}

// cleanEnv is the environment without what etcd would take for its flags.
func cleanEnv() []string {
	return slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "ETCD_") })
}

// await polls the path until it answers 200.
func (m *Server) await(path string) {
	m.t.Helper()
	m.process.Await(func(ctx context.Context) bool { return m.answers(ctx, path) })
}

func (m *Server) answers(ctx context.Context, path string) bool {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, m.Endpoint+path, nil)
	if err != nil {
		m.t.Fatal(err)
	}
	resp, err := m.cluster.probe.Do(req)
	if err != nil {
		return false
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, resp.Body)
	return resp.StatusCode == http.StatusOK
}

func (s *Servers) argsOf(t testing.TB, m *Server) []string {
	t.Helper()
	args := []string{
		"--name", m.Name, "--data-dir", m.DataDir,
		"--listen-client-urls", m.Endpoint, "--advertise-client-urls", m.Endpoint,
		"--listen-peer-urls", m.PeerURL, "--initial-advertise-peer-urls", m.PeerURL,
		"--initial-cluster", s.InitialCluster(), "--initial-cluster-token", filepath.Dir(m.DataDir),
		"--log-level", "warn", "--bcrypt-cost", strconv.Itoa(bcrypt.MinCost),
	}
	if i := slices.Index(s.Members, m); i < len(s.opts.Advertise) {
		args = append(args, "--advertise-client-urls", s.opts.Advertise[i])
	}
	if m.WALDir != "" {
		args = append(args, "--wal-dir", m.WALDir)
	}
	if !s.opts.Fsync {
		args = append(args, "--unsafe-no-fsync")
	}
	if s.opts.CA != nil {
		pair := s.opts.CA.Server(t)
		args = append(args, "--cert-file", pair.CertFile, "--key-file", pair.KeyFile)
		if s.opts.ClientCerts {
			args = append(args, "--trusted-ca-file", s.opts.CA.File, "--client-cert-auth")
		}
		if s.opts.PeerTLS {
			args = append(args, "--peer-cert-file", pair.CertFile, "--peer-key-file", pair.KeyFile,
				"--peer-trusted-ca-file", s.opts.CA.File, "--peer-client-cert-auth")
		}
	}
	return append(args, s.opts.Flags...)
}

func scheme(secure bool) string {
	if secure {
		return "https://"
	}
	return "http://"
}

// ReservePort keeps a free loopback port for the test and returns its address.
func ReservePort(t testing.TB) string {
	t.Helper()
	p, err := embedded.ReservePort()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Release)
	return p.Addr()
}

func probe(t testing.TB, ca *certs.CA) *http.Client {
	t.Helper()
	var cfg *tls.Config
	if ca != nil {
		cfg = ca.ClientConfig(t, ca.Client(t, "probe"))
	}
	return &http.Client{
		Timeout:   5 * time.Second,
		Transport: &http.Transport{TLSClientConfig: cfg, DisableKeepAlives: true},
	}
}
