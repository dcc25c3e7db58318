package store

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"

	"github.com/minio/minio-go/v7"

	"github.com/etcdkit/etcdkit/internal/hint"
)

// cause digs the S3 answer out of err, or returns err.
func cause(err error) error {
	if resp, ok := errors.AsType[minio.ErrorResponse](err); ok {
		return resp
	}
	return err
}

// passing reports whether a request that failed so may succeed when repeated.
func passing(err error) bool {
	if errors.Is(err, ErrForeign) {
		return !errors.Is(err, errRefusedInItsPlace)
	}
	resp, ok := errors.AsType[minio.ErrorResponse](err)
	if ok && resp.StatusCode != 0 && resp.StatusCode != http.StatusOK {
		switch resp.StatusCode {
		case http.StatusRequestTimeout, http.StatusTooManyRequests, http.StatusInternalServerError,
			http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
			return true
		}
		return resp.Code == "RequestTimeout" || resp.Code == "SlowDown"
	}
	if ok { // an error inside a 200, as of a join of parts
		switch resp.Code {
		case "InternalError", "SlowDown", "RequestTimeout", "ServiceUnavailable", "Busy":
			return true
		}
		return false
	}
	if certificate(err) != "" {
		return false
	}
	if dns, isDNS := errors.AsType[*net.DNSError](err); isDNS && dns.IsNotFound {
		return false
	}
	if strings.Contains(err.Error(), plainAnswer) || speaksTLS(err) || errors.Is(err, ErrProxy) {
		return false
	}
	_, network := errors.AsType[net.Error](err)
	return network || errors.Is(err, errStalled) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.Is(err, context.DeadlineExceeded)
}

// plainAnswer is what Go's client says of a server without TLS.
const plainAnswer = "server gave HTTP response to HTTPS client"

// errSpeaksTLS tells of a port that wants TLS and was spoken to without.
var errSpeaksTLS = errors.New("it wants TLS, and the request came without")

// speaksTLS reports whether a server wants TLS: it says so, or it answers with an
// alert of TLS (content type 21, version 3; RFC 8446, 5.1).
func speaksTLS(err error) bool {
	return errors.Is(err, errSpeaksTLS) || strings.Contains(err.Error(), `malformed HTTP response "\x15\x03`)
}

// refusesChecksum reports whether a store that does not know a checksum may
// have answered so. The answers differ; trying the next one tells.
func refusesChecksum(err error) bool {
	resp, ok := errors.AsType[minio.ErrorResponse](err)
	if !ok {
		return false
	}
	switch resp.Code {
	case "NotImplemented", "InvalidRequest", "InvalidArgument", "BadRequest", "InvalidDigest", "XAmzContentChecksumMismatch", "MalformedTrailerError":
		return true
	}
	return resp.StatusCode == http.StatusNotImplemented ||
		(resp.StatusCode == http.StatusBadRequest && strings.Contains(strings.ToLower(resp.Message), "checksum"))
}

// withoutLock reports whether the answer means that the object has no lock, or
// that the store knows none.
func withoutLock(err error) bool {
	resp, ok := errors.AsType[minio.ErrorResponse](err)
	if !ok {
		return false
	}
	switch resp.Code {
	case "NoSuchObjectLockConfiguration", "ObjectLockConfigurationNotFoundError", "InvalidRequest", "NotImplemented", "MethodNotAllowed":
		return true
	}
	return resp.StatusCode == http.StatusNotImplemented
}

// unreadable reports whether an answer was no error of the store's, and not
// what it should have been either.
func unreadable(err error) bool {
	_, ok := errors.AsType[xml.UnmarshalError](err)
	return ok
}

// certificate returns what is wrong with the server's certificate, "" if that
// is not the matter.
func certificate(err error) string {
	if _, ok := errors.AsType[x509.UnknownAuthorityError](err); ok {
		return "pass its authority with --s3-ca-file"
	}
	if _, ok := errors.AsType[x509.HostnameError](err); ok {
		return "the certificate is for another name: use that name in --s3-endpoint, or try --s3-addressing path"
	}
	if _, ok := errors.AsType[x509.CertificateInvalidError](err); ok {
		return "renew the certificate, or check this machine's clock"
	}
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return "pass its authority with --s3-ca-file"
	}
	return ""
}

// explain says what was asked for and why it was not done, in the words of an
// operator, and names the flags that belong to this store.
func (s *S3) explain(req request, err error) error {
	err = s.reason(req, err)
	next := hint.Of(err)
	if s.opts.FlagPrefix == "" || next == "" {
		return err
	}
	return hint.With(errors.Unwrap(err), "%s", strings.ReplaceAll(next, "--s3-", "--"+s.opts.FlagPrefix+"s3-"))
}

func (s *S3) reason(req request, err error) error {
	what := fmt.Sprintf("%s %s", req.verb, s.URL()+req.key)
	resp, ok := errors.AsType[minio.ErrorResponse](err)
	if !ok || resp.Code == "" {
		return s.explainNetwork(what, err)
	}
	say := func(sentinel error) error { return fmt.Errorf("%s: %w (%w)", what, sentinel, resp) }
	switch resp.Code {
	case minio.NoSuchBucket:
		return hint.With(say(ErrNoBucket), "create bucket %q, or check --s3-endpoint and --s3-region", s.bucket)
	case minio.NoSuchKey, minio.NoSuchUpload, "NotFound":
		return say(ErrNotExist)
	case "InvalidAccessKeyId", "SignatureDoesNotMatch", "AuthorizationHeaderMalformed", "InvalidToken", "InvalidSecurity", "XMinioInvalidIAMCredentials",
		"XAdminUserNotFound":
		return hint.With(say(ErrDenied), "check the access key and secret in AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY or of --s3-profile, and --s3-region%s", regionHint(resp))
	case "ExpiredToken", "ExpiredTokenException":
		return hint.With(say(ErrDenied), "the session token has expired: get new credentials")
	case "RequestTimeTooSkewed", "RequestExpired":
		return hint.With(say(ErrDenied), "this machine's clock and the store's differ: synchronise them")
	case minio.AccessDenied, "AllAccessDisabled", "Forbidden":
		return hint.With(say(ErrDenied), "the credentials need %s on bucket %q", req.right, s.bucket)
	case "PermanentRedirect", "TemporaryRedirect", "MovedPermanently", "IllegalLocationConstraintException":
		return hint.With(fmt.Errorf("%s: %w", what, resp), "the bucket is elsewhere: set --s3-region%s", regionHint(resp))
	case "EntityTooLarge":
		return hint.With(fmt.Errorf("%s: %w", what, resp), "choose a smaller --part-size")
	}
	return s.explainStatus(what, req, resp)
}

// explainStatus serves answers without a code of S3, such as a proxy's.
func (s *S3) explainStatus(what string, req request, resp minio.ErrorResponse) error {
	err := fmt.Errorf("%s: %w (HTTP %d)", what, resp, resp.StatusCode)
	switch resp.StatusCode {
	case http.StatusRequestEntityTooLarge:
		return hint.With(err, "a proxy in front of the store limits the size of requests: raise its limit, or choose a smaller --part-size")
	case http.StatusForbidden, http.StatusUnauthorized:
		return hint.With(fmt.Errorf("%s: %w (%w)", what, ErrDenied, resp), "the credentials need %s on bucket %q", req.right, s.bucket)
	case http.StatusNotFound:
		return fmt.Errorf("%s: %w (%w)", what, ErrNotExist, resp)
	case http.StatusMovedPermanently, http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
		return hint.With(err, "the bucket is elsewhere: check --s3-endpoint and --s3-region")
	}
	if resp.StatusCode >= http.StatusInternalServerError {
		return hint.With(err, "the store failed for %s in a row: look at its own health", s.opts.RetryFor)
	}
	return err
}

func regionHint(resp minio.ErrorResponse) string {
	if resp.Region == "" {
		return ""
	}
	return " (the store says " + resp.Region + ")"
}

func (s *S3) explainNetwork(what string, err error) error {
	if errors.Is(err, ErrForeign) {
		if u, ok := errors.AsType[*url.Error](err); ok {
			err = u.Err
		}
		return hint.With(fmt.Errorf("%s: %w", what, err), "check --s3-endpoint and --s3-proxy: something in front of the store answered in its place")
	}
	if u, ok := errors.AsType[*url.Error](err); ok {
		err = u.Err // the URL repeats what is in what, and may be signed
	}
	wrapped := fmt.Errorf("%s: %w: %w", what, ErrUnreachable, err)
	if next := certificate(err); next != "" {
		return hint.With(wrapped, "%s", next)
	}
	if errors.Is(err, ErrProxy) || errors.Is(err, errProxyFails) {
		return hint.With(wrapped, "check --s3-proxy, or HTTPS_PROXY and NO_PROXY in the environment: the proxy must let through to that host")
	}
	if op, ok := errors.AsType[*net.OpError](err); ok && op.Op == "proxyconnect" {
		return hint.With(wrapped, "it is the proxy that cannot be reached: check --s3-proxy, or HTTPS_PROXY and NO_PROXY in the environment")
	}
	if speaksTLS(err) {
		return hint.With(wrapped, "the store speaks TLS: write --s3-endpoint https://%s", s.core.EndpointURL().Host)
	}
	if strings.Contains(err.Error(), plainAnswer) {
		return hint.With(wrapped, "the store speaks plain HTTP: write --s3-endpoint http://%s", s.core.EndpointURL().Host)
	}
	if _, ok := errors.AsType[*net.DNSError](err); ok {
		return hint.With(wrapped, "check the host in --s3-endpoint; if it begins with the bucket's name, try --s3-addressing path")
	}
	_, network := errors.AsType[net.Error](err)
	if network || errors.Is(err, errStalled) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return hint.With(wrapped, "check --s3-endpoint and --s3-proxy, and the way to that host")
	}
	return fmt.Errorf("%s: %w", what, err)
}
