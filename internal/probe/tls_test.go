package probe_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"os"
	"path/filepath"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/egret-net/egret/internal/probe"
)

func dialed(t *testing.T, address string) *grpc.ClientConn {
	t.Helper()
	cc, err := grpc.NewClient("passthrough:///"+address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cc.Close() })
	return cc
}

// authority signs certificates.
type authority struct {
	t    *testing.T
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t *testing.T, name string) *authority {
	a := &authority{t: t}
	var err error
	if a.key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
		t.Fatal(err)
	}
	a.cert = &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, NotBefore: time.Now().Add(-time.Hour),
		NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	raw, err := x509.CreateCertificate(rand.Reader, a.cert, a.cert, a.key.Public(), a.key)
	if err != nil {
		t.Fatal(err)
	}
	if a.cert, err = x509.ParseCertificate(raw); err != nil {
		t.Fatal(err)
	}
	return a
}

// write puts a new certificate into a folder, with its key and its authority, in place of what is there. As those of OVN it has no
// other name than its common one.
func (a *authority) write(dir, name string) probe.Files {
	a.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.t.Fatal(err)
	}
	leaf := &x509.Certificate{SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name}, NotBefore: a.cert.NotBefore, NotAfter: a.cert.NotAfter}
	raw, err := x509.CreateCertificate(rand.Reader, leaf, a.cert, key.Public(), a.key)
	if err != nil {
		a.t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		a.t.Fatal(err)
	}
	f := probe.Files{Cert: filepath.Join(dir, "tls.crt"), Key: filepath.Join(dir, "tls.key"), CA: filepath.Join(dir, "ca.crt"), Name: name}
	for path, block := range map[string]pem.Block{f.Cert: {Type: "CERTIFICATE", Bytes: raw}, f.Key: {Type: "PRIVATE KEY", Bytes: secret}, f.CA: {Type: "CERTIFICATE", Bytes: a.cert.Raw}} {
		if err := os.WriteFile(path, pem.EncodeToMemory(&block), 0o600); err != nil {
			a.t.Fatal(err)
		}
	}
	return f
}

// TestTLS: both sides show certificates of the authority; who has none, one of another, or another's name, is not spoken with.
func TestTLS(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	good, other := newAuthority(t, "good"), newAuthority(t, "other")
	files := good.write(t.TempDir(), "ovn")
	l.agent(71, files)
	l.agent(72, other.write(t.TempDir(), "ovn"))
	l.agent(73, good.write(t.TempDir(), "web"))
	l.agent(74, probe.Files{})
	l.probe(probe.Options{Self: "n9", Port: l.port, Grace: 4 * time.Second, TLS: files}, 71, 72, 73, 74)
	for _, n := range []string{"n72", "n73", "n74"} {
		l.soon(n, "AgentAway")
	}
	if l.last("n71") != "-" {
		t.Errorf("told %v", l.told)
	}
	stranger := newLab(t)
	stranger.port = l.port
	stranger.probe(probe.Options{Self: "n9", Port: l.port, Grace: 3 * time.Second, TLS: probe.Files{CA: files.CA}}, 71)
	stranger.soon("n71", "AgentAway") // it shows no certificate
}

// TestReload: certificates and authority are exchanged on both sides while they run, and sessions bounce; nobody is told anything.
func TestReload(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	dirs := []string{t.TempDir(), t.TempDir(), t.TempDir()}
	first, second := newAuthority(t, "first"), newAuthority(t, "second")
	agent, another := first.write(dirs[0], "ovn"), first.write(dirs[1], "ovn")
	stop := l.agent(81, agent)
	l.agent(82, another)
	l.probe(probe.Options{Self: "n9", Port: l.port, Grace: 8 * time.Second, TLS: first.write(dirs[2], "ovn")}, 81, 82)
	l.quiet(2 * time.Second)
	for _, dir := range dirs {
		second.write(dir, "ovn")
	}
	stop()
	l.agent(81, agent) // the session bounces, and finds the new certificates; that of 82 goes on with the old ones
	l.quiet(10 * time.Second)

	old := newLab(t)
	old.port = l.port
	old.probe(probe.Options{Self: "n9", Port: l.port, Grace: 3 * time.Second, TLS: first.write(t.TempDir(), "ovn")}, 82)
	old.soon("n82", "AgentAway") // 82 was not restarted, and shows the new one
}
