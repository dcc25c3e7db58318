package store

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"

	"github.com/minio/minio-go/v7/pkg/credentials"

	"github.com/etcdkit/etcdkit/internal/hint"
)

// source is a place where credentials may be, and why they were not there.
type source struct {
	credentials.Provider
	name string
	err  error
}

var (
	errNoVariables = errors.New("AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY are not both set")
	errNoKeys      = errors.New("the profile has no access key; role_arn is not followed, credential_process is")
	errNoRole      = errors.New("it gave no credentials")
)

// RetrieveWithCredContext asks the provider and keeps what it said: the chain
// drops it.
func (s *source) RetrieveWithCredContext(cc *credentials.CredContext) (credentials.Value, error) {
	v, err := s.Provider.RetrieveWithCredContext(cc)
	s.err = err
	if err == nil && (v.AccessKeyID == "" || v.SecretAccessKey == "") {
		switch s.Provider.(type) {
		case *credentials.EnvAWS:
			s.err = errNoVariables
		case *credentials.FileAWSCredentials:
			s.err = errNoKeys
		default:
			s.err = errNoRole
		}
	}
	return v, err
}

// why says what the place answered. An address in it may be signed, or hold a
// token: the host is enough.
func (s *source) why() string {
	err := s.err
	if u, ok := errors.AsType[*url.Error](err); ok {
		host := "the service"
		if parsed, parseErr := url.Parse(u.URL); parseErr == nil {
			host = parsed.Host
		}
		return fmt.Sprintf("%s: %s: %v", s.name, host, u.Err)
	}
	return fmt.Sprintf("%s: %v", s.name, err)
}

// findCredentials builds the chain of the AWS tools and proves that it yields
// something: without, a request would go out anonymously and be denied for the
// wrong reason. Where nothing is found, it says what each place answered.
func findCredentials(ctx context.Context, opts S3Options, t *transport) (*credentials.Credentials, error) {
	client, profile := t.metadataClient(opts.MetadataEndpoint), opts.Profile
	files := &source{Provider: &credentials.FileAWSCredentials{Profile: profile}, name: "the AWS files"}
	sources := []*source{
		{Provider: &credentials.EnvAWS{}, name: "the environment"},
		files,
		{Provider: &credentials.IAM{Client: client, Endpoint: opts.MetadataEndpoint}, name: "the role of this machine or pod"},
	}
	if profile != "" {
		sources = []*source{files}
	}
	chain := &credentials.Chain{}
	for _, s := range sources {
		chain.Providers = append(chain.Providers, s)
	}
	creds := credentials.New(chain)
	got, err := creds.GetWithContext(&credentials.CredContext{Client: client, Context: ctx})
	if err == nil && got.AccessKeyID != "" && got.SecretAccessKey != "" {
		return creds, nil
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if profile != "" {
		return nil, hint.With(fmt.Errorf("%w: profile %q has no S3 credentials: %s", ErrConfig, profile, files.why()),
			"check that name in ~/.aws/credentials and ~/.aws/config")
	}
	var tried []string
	for _, s := range sources {
		tried = append(tried, s.why())
	}
	return nil, hint.With(fmt.Errorf("%w: no S3 credentials found: %s", ErrConfig, strings.Join(tried, "; ")),
		"set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or --s3-profile, or mend what the place meant answers")
}

// metadataClient serves the look-up of a role. What the machine itself answers is
// asked without a proxy; a token service elsewhere is reached as the store is.
func (t *transport) metadataClient(endpoint string) *http.Client {
	next := t.next.Clone()
	proxy := next.Proxy
	next.Proxy = func(req *http.Request) (*url.URL, error) {
		if proxy == nil || isOwn(req.URL.Hostname()) || endpoint != "" && strings.Contains(endpoint, req.URL.Host) {
			return nil, nil
		}
		return proxy(req)
	}
	own, far := &net.Dialer{Timeout: ownDialTimeout}, &net.Dialer{Timeout: dialTimeout}
	next.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		if host, _, err := net.SplitHostPort(address); err == nil && isOwn(host) {
			return own.DialContext(ctx, network, address)
		}
		return far.DialContext(ctx, network, address)
	}
	return &http.Client{Transport: next, Timeout: metadataTimeout}
}

// isOwn reports whether an address is one at which a machine's own services
// answer: link-local, loopback, or that of EC2 in IPv6.
func isOwn(host string) bool {
	if host == "localhost" {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && (ip.IsLinkLocalUnicast() || ip.IsLoopback() || ip == netip.MustParseAddr("fd00:ec2::254") || ip == netip.MustParseAddr("fd00:ec2::23"))
}
