package probe

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
)

// Files are the TLS material of the health service, as paths; "" for what there is not. A side that has a certificate shows it; one that
// has an authority wants a certificate of it from the other.
type Files struct {
	Cert, Key, CA string
	// Name that an agent's certificate must have, as a DNS name or as its common name; "": any.
	Name string
}

// material is what the files held when they were last read; they are read again when they have changed.
type material struct {
	files Files
	mu    sync.Mutex
	read  bool
	stamp [3]stamp
	cert  *tls.Certificate // nil without one
	ca    *x509.CertPool   // nil without one
}

type stamp struct {
	at   time.Time
	size int64
}

// serverCredentials are TLS where there is a certificate to show.
func serverCredentials(f Files) credentials.TransportCredentials {
	if f.Cert == "" {
		return insecure.NewCredentials()
	}
	m := &material{files: f}
	return credentials.NewTLS(&tls.Config{MinVersion: tls.VersionTLS12, GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return m.server() }})
}

func (m *material) server() (*tls.Config, error) {
	cert, ca, err := m.load()
	if err != nil {
		return nil, err
	}
	c := &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{*cert}, NextProtos: []string{"h2"}}
	if ca != nil {
		c.ClientCAs, c.ClientAuth = ca, tls.RequireAndVerifyClientCert
	}
	return c, nil
}

// client are the credentials of one session: TLS where there is an authority to check the agent's certificate with.
func (m *material) client() (credentials.TransportCredentials, error) {
	if m.files.CA == "" {
		return insecure.NewCredentials(), nil
	}
	cert, ca, err := m.load()
	if err != nil {
		return nil, err
	}
	c := &tls.Config{
		MinVersion: tls.VersionTLS12,
		// Management addresses are in no certificate, and OVN's own certificates have a common name only: verify does instead what is left out here.
		InsecureSkipVerify: true,
		VerifyConnection:   func(s tls.ConnectionState) error { return verify(s.PeerCertificates, ca, m.files.Name) },
	}
	if cert != nil {
		c.Certificates = []tls.Certificate{*cert}
	}
	return credentials.NewTLS(c), nil
}

func verify(chain []*x509.Certificate, ca *x509.CertPool, name string) error {
	if len(chain) == 0 {
		return errors.New("the agent has no certificate")
	}
	between := x509.NewCertPool()
	for _, c := range chain[1:] {
		between.AddCert(c)
	}
	if _, err := chain[0].Verify(x509.VerifyOptions{Roots: ca, Intermediates: between}); err != nil {
		return err
	}
	if name != "" && chain[0].Subject.CommonName != name && chain[0].VerifyHostname(name) != nil {
		return fmt.Errorf("the agent's certificate is of %q, not of %q: see --nb-cert-common-name", chain[0].Subject.CommonName, name)
	}
	return nil
}

// load reads the files if they have changed. Files that are just being replaced may not fit one another: then what was read before is good.
func (m *material) load() (*tls.Certificate, *x509.CertPool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.look()
	if m.read && now == m.stamp {
		return m.cert, m.ca, nil
	}
	cert, ca, err := m.files.read()
	switch {
	case err == nil:
		m.read, m.stamp, m.cert, m.ca = true, now, cert, ca
	case !m.read:
		return nil, nil, err
	}
	return m.cert, m.ca, nil
}

func (m *material) look() (s [3]stamp) {
	for i, path := range []string{m.files.Cert, m.files.Key, m.files.CA} {
		if info, err := os.Stat(path); err == nil {
			s[i] = stamp{info.ModTime(), info.Size()}
		}
	}
	return s
}

func (f Files) read() (cert *tls.Certificate, ca *x509.CertPool, err error) {
	if f.Cert != "" {
		pair, err := tls.LoadX509KeyPair(f.Cert, f.Key)
		if err != nil {
			return nil, nil, fmt.Errorf("certificate of the health service (--nb-client-cert, --nb-client-privkey): %w", err)
		}
		cert = &pair
	}
	if f.CA != "" {
		text, err := os.ReadFile(f.CA)
		if err != nil {
			return nil, nil, fmt.Errorf("authority of the health service (--nb-client-cacert): %w", err)
		}
		ca = x509.NewCertPool()
		if !ca.AppendCertsFromPEM(text) {
			return nil, nil, fmt.Errorf("%s has no certificate: give --nb-client-cacert a PEM file", f.CA)
		}
	}
	return cert, ca, nil
}
