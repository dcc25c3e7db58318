// Package config turns flags, environment variables and the configuration file
// into what commands need. It alone knows pflag and viper below the command
// layer, and the flags' variables are the only owner of a setting.
package config

import (
	"io/fs"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/etcdkit/etcdkit/internal/cli"
	"github.com/etcdkit/etcdkit/internal/etcd"
)

// Flags are the global flags: etcdctl's, and under etcdkit's own name a few
// more. Their defaults are etcdctl's.
type Flags struct {
	Conn           etcd.Config
	CommandTimeout time.Duration
	WriteOut       string
	Hex            bool
	Debug          bool

	DiscoverySRV      string
	DiscoverySRVName  string
	InsecureDiscovery bool

	// Native only.
	ConfigFile      string
	Context         string
	PasswordFile    string
	ExpectClusterID string
	Yes, Force      bool
	Quiet           bool
	NoJournal       bool
	Discover        string
	Resolve         []string

	Root  fs.FS      // the files that discovery looks at, nil means the machine's
	Found etcd.Found // what discovery found, after Connection

	File    *File             // the configuration file, after Fill
	filled  *pflag.FlagSet    // the flags, after Fill
	sources map[string]string // where a flag's value came from, by flag; "" is its default
}

// Bind defines the flags of the dialect on fs and marks those that variables
// may set.
func (f *Flags) Bind(fs *pflag.FlagSet, d cli.Dialect) {
	f.bindUpstream(fs)
	if d == cli.Native {
		f.Conn.FailFast = d.DiagnosesConnections()
		f.bindNative(fs)
	}
}

func (f *Flags) bindUpstream(fs *pflag.FlagSet) {
	c := &f.Conn
	fs.StringSliceVar(&c.Endpoints, "endpoints", []string{"127.0.0.1:2379"}, "gRPC endpoints")
	fs.BoolVar(&f.Debug, "debug", false, "enable client-side debug logging")
	fs.StringVarP(&f.WriteOut, "write-out", "w", "simple", "set the output format (fields, json, protobuf, simple, table)")
	fs.BoolVar(&f.Hex, "hex", false, "print byte strings as hex encoded strings")
	fs.DurationVar(&c.DialTimeout, "dial-timeout", 2*time.Second, "dial timeout for client connections")
	fs.DurationVar(&f.CommandTimeout, "command-timeout", 5*time.Second, "timeout for short running command (excluding dial timeout)")
	fs.DurationVar(&c.KeepAliveTime, "keepalive-time", 2*time.Second, "keepalive time for client connections")
	fs.DurationVar(&c.KeepAliveTimeout, "keepalive-timeout", 6*time.Second, "keepalive timeout for client connections")
	fs.IntVar(&c.MaxRequestBytes, "max-request-bytes", 0, "client-side request send limit in bytes (if 0, it defaults to 2.0 MiB (2 * 1024 * 1024).)")
	fs.IntVar(&c.MaxRecvBytes, "max-recv-bytes", 0, "client-side response receive limit in bytes (if 0, it defaults to \"math.MaxInt32\")")
	fs.BoolVar(&c.TLS.InsecureTransport, "insecure-transport", true, "disable transport security for client connections")
	fs.BoolVar(&f.InsecureDiscovery, "insecure-discovery", true, "accept insecure SRV records describing cluster endpoints")
	fs.BoolVar(&c.TLS.InsecureSkipVerify, "insecure-skip-tls-verify", false,
		"skip server certificate verification (CAUTION: this option should be enabled only for testing purposes)")
	fs.StringVar(&c.TLS.Cert, "cert", "", "identify secure client using this TLS certificate file")
	fs.StringVar(&c.TLS.Key, "key", "", "identify secure client using this TLS key file")
	fs.StringVar(&c.TLS.CACert, "cacert", "", "verify certificates of TLS-enabled secure servers using this CA bundle")
	fs.StringVar(&c.Auth.Token, "auth-jwt-token", "", "JWT token used for authentication (if this option is used, --user and --password should not be set)")
	fs.StringVar(&c.Auth.User, "user", "", "username[:password] for authentication (prompt if password is not supplied)")
	fs.StringVar(&c.Auth.Password, "password", "", "password for authentication (if this option is used, --user option shouldn't include password)")
	fs.StringVarP(&f.DiscoverySRV, "discovery-srv", "d", "", "domain name to query for SRV records describing cluster endpoints")
	fs.StringVar(&f.DiscoverySRVName, "discovery-srv-name", "", "service name to query when using DNS discovery")
	Env(fs, "endpoints", "debug", "write-out", "hex", "dial-timeout", "command-timeout", "keepalive-time", "keepalive-timeout",
		"max-request-bytes", "max-recv-bytes", "insecure-transport", "insecure-discovery", "insecure-skip-tls-verify",
		"cert", "key", "cacert", "auth-jwt-token", "user", "password", "discovery-srv", "discovery-srv-name")
}

// bindNative defines what etcdkit adds. The flags that widen an effect (--yes,
// --force) can never be set by a variable.
func (f *Flags) bindNative(fs *pflag.FlagSet) {
	fs.StringVar(&f.ConfigFile, "config", "", "configuration file (default ~/.config/etcdkit/config.yaml, then /etc/etcdkit/config.yaml)")
	fs.StringVar(&f.Context, "context", "", "context of the configuration file to use")
	fs.StringVar(&f.PasswordFile, "password-file", "", "file that holds the password, keeps it out of the process list; - is a line of standard input")
	fs.StringVar(&f.ExpectClusterID, "expect-cluster-id", "", "refuse to work on any cluster but the one with this id (hex)")
	fs.BoolVar(&f.Yes, "yes", false, "answer questions with yes")
	fs.BoolVar(&f.Force, "force", false, "override a safety refusal, such as one that protects quorum")
	fs.BoolVarP(&f.Quiet, "quiet", "q", false, "no progress and no notes on standard error, only errors")
	fs.BoolVar(&f.NoJournal, "no-journal", false, "do not note in the local journal what changed a cluster")
	fs.StringVar(&f.Discover, "discover", discoverAuto, "where nothing says how to connect, use the etcd of this node: auto, none, "+strings.Join(etcd.Layouts(), ", "))
	fs.StringSliceVar(&f.Resolve, "resolve", nil, "connect to ADDRESS:PORT for HOST:PORT, as HOST:PORT=ADDRESS:PORT; may be given several times, for members behind a tunnel")
	Env(fs, "config", "context", "password-file", "discover", "resolve")
}

// envMark is the annotation of flags that a variable may set.
const envMark = "etcdkit_env"

// Env marks flags of fs as settable by a variable: connection, TLS, auth,
// output, timeouts, discovery, repository and crypto flags only.
func Env(fs *pflag.FlagSet, names ...string) {
	for _, name := range names {
		if err := fs.SetAnnotation(name, envMark, []string{"true"}); err != nil {
			panic(err) // a flag that does not exist: wrong code, seen by every test
		}
	}
}
