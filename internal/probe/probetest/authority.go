// Package probetest makes TLS material for tests of the health service and of metrics.
//
// In: a test and a folder. Out: files with a certificate, its key and its authority, as the programs' flags name them.
package probetest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/egret-net/egret/internal/probe"
)

// Authority signs certificates.
type Authority struct {
	t    *testing.T
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// Pool is of this authority alone.
func (a *Authority) Pool() *x509.CertPool {
	p := x509.NewCertPool()
	p.AddCert(a.cert)
	return p
}

// NewAuthority makes one with a key of its own, for an hour.
func NewAuthority(t *testing.T, name string) *Authority {
	t.Helper()
	a := &Authority{t: t}
	var err error
	if a.key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
		t.Fatal(err)
	}
	a.cert = &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-time.Hour),
		NotAfter:  time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	raw, err := x509.CreateCertificate(rand.Reader, a.cert, a.cert, a.key.Public(), a.key)
	if err != nil {
		t.Fatal(err)
	}
	if a.cert, err = x509.ParseCertificate(raw); err != nil {
		t.Fatal(err)
	}
	return a
}

// Write puts a new certificate into a folder, with its key and its authority, in place of what is there. As those of
// OVN it has no other name than its common one.
func (a *Authority) Write(dir, name string) probe.Files {
	a.t.Helper()
	return a.writeFiles(dir, &x509.Certificate{Subject: pkix.Name{CommonName: name}})
}

// WriteExpired does so with a certificate that was valid until a minute ago.
func (a *Authority) WriteExpired(dir, name string) probe.Files {
	a.t.Helper()
	return a.writeFiles(dir, &x509.Certificate{Subject: pkix.Name{CommonName: name},
		NotBefore: a.cert.NotBefore, NotAfter: time.Now().Add(-time.Minute)})
}

// WriteServer does so with a certificate of a host, as those that find it by its name or address want it.
func (a *Authority) WriteServer(dir string, names []string, ips ...net.IP) probe.Files {
	a.t.Helper()
	return a.writeFiles(dir, &x509.Certificate{DNSNames: names, IPAddresses: ips,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}})
}

func (a *Authority) writeFiles(dir string, leaf *x509.Certificate) probe.Files {
	a.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.t.Fatal(err)
	}
	leaf.SerialNumber = big.NewInt(time.Now().UnixNano())
	if leaf.NotAfter.IsZero() {
		leaf.NotBefore, leaf.NotAfter = a.cert.NotBefore, a.cert.NotAfter
	}
	raw, err := x509.CreateCertificate(rand.Reader, leaf, a.cert, key.Public(), a.key)
	if err != nil {
		a.t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		a.t.Fatal(err)
	}
	f := probe.Files{Cert: filepath.Join(dir, "tls.crt"), Key: filepath.Join(dir, "tls.key"),
		CA: filepath.Join(dir, "ca.crt"), Name: leaf.Subject.CommonName}
	for path, block := range map[string]pem.Block{f.Cert: {Type: "CERTIFICATE", Bytes: raw},
		f.Key: {Type: "PRIVATE KEY", Bytes: secret}, f.CA: {Type: "CERTIFICATE", Bytes: a.cert.Raw}} {
		if err := os.WriteFile(path, pem.EncodeToMemory(&block), 0o600); err != nil {
			a.t.Fatal(err)
		}
	}
	return f
}
