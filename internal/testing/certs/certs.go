// Package certs makes throwaway certificates for tests: an authority, and
// servers and clients that it vouches for.
package certs

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// CA is a certificate authority that lives as long as a test.
type CA struct {
	File string // its certificate, PEM

	dir  string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// Pair is a certificate and its key, each in a PEM file.
type Pair struct{ CertFile, KeyFile string }

// NewCA makes an authority in a temporary folder of the test.
func NewCA(t testing.TB) *CA {
	t.Helper()
	ca := &CA{dir: t.TempDir()}
	ca.cert = &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "etcdkit test CA"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageCRLSign, BasicConstraintsValid: true, IsCA: true,
	}
	pair := ca.issue(t, "ca", ca.cert)
	ca.File = pair.CertFile
	return ca
}

// Server makes a certificate for a server on loopback, good for client use
// too: etcd's peers are both at once.
func (ca *CA) Server(t testing.TB) Pair {
	t.Helper()
	return ca.issue(t, "server", &x509.Certificate{
		Subject:     pkix.Name{CommonName: "localhost"},
		NotBefore:   time.Now().Add(-time.Hour),
		NotAfter:    time.Now().Add(24 * time.Hour),
		DNSNames:    []string{"localhost"},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	})
}

// Client makes a client certificate for the common name, which etcd takes as
// the user's name where authentication is on.
func (ca *CA) Client(t testing.TB, commonName string) Pair {
	t.Helper()
	return ca.issue(t, "client-"+commonName, &x509.Certificate{
		Subject:     pkix.Name{CommonName: commonName},
		NotBefore:   time.Now().Add(-time.Hour),
		NotAfter:    time.Now().Add(24 * time.Hour),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	})
}

// Expired makes a server certificate whose time is over.
func (ca *CA) Expired(t testing.TB) Pair {
	t.Helper()
	return ca.issue(t, "expired", &x509.Certificate{
		Subject:     pkix.Name{CommonName: "localhost"},
		NotBefore:   time.Now().Add(-48 * time.Hour),
		NotAfter:    time.Now().Add(-24 * time.Hour),
		DNSNames:    []string{"localhost"},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	})
}

// ClientConfig returns a TLS configuration that trusts the authority alone,
// and shows the pairs given.
func (ca *CA) ClientConfig(t testing.TB, pairs ...Pair) *tls.Config {
	t.Helper()
	pool := x509.NewCertPool()
	pool.AddCert(ca.cert)
	cfg := &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
	for _, p := range pairs {
		cert, err := tls.LoadX509KeyPair(p.CertFile, p.KeyFile)
		if err != nil {
			t.Fatal(err)
		}
		cfg.Certificates = append(cfg.Certificates, cert)
	}
	return cfg
}

// issue signs the template and writes the pair to a folder of its own. The
// first one issued is the authority itself.
func (ca *CA) issue(t testing.TB, name string, template *x509.Certificate) Pair {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	if ca.key == nil {
		ca.key = key
	}
	if template.SerialNumber == nil {
		template.SerialNumber = big.NewInt(time.Now().UnixNano())
	}
	if template.KeyUsage == 0 {
		template.KeyUsage = x509.KeyUsageDigitalSignature
	}
	der, err := x509.CreateCertificate(rand.Reader, template, ca.cert, &key.PublicKey, ca.key)
	if err != nil {
		t.Fatal(err)
	}
	if template.IsCA {
		if ca.cert, err = x509.ParseCertificate(der); err != nil {
			t.Fatal(err)
		}
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp(ca.dir, name+"-*")
	if err != nil {
		t.Fatal(err)
	}
	pair := Pair{CertFile: filepath.Join(dir, name+".crt"), KeyFile: filepath.Join(dir, name+".key")}
	writePEM(t, pair.CertFile, "CERTIFICATE", der)
	writePEM(t, pair.KeyFile, "PRIVATE KEY", keyDER)
	return pair
}

func writePEM(t testing.TB, path, kind string, der []byte) {
	t.Helper()
	if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
}
