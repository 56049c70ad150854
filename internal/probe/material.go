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

// Files are the TLS material of the health service, as paths. With all of them each side shows its certificate and
// wants one of the authority from the other; otherwise neither speaks TLS.
type Files struct {
	Cert, Key, CA string
	// Name that an agent's certificate must have, as a DNS name or as its common name; "": any.
	Name string
}

// complete is the rule by which both sides know whether they speak TLS.
func (f Files) complete() bool { return f.Cert != "" && f.Key != "" && f.CA != "" }

// material is what the files held when they were last read; they are read again when they have changed.
type material struct {
	files Files
	mu    sync.Mutex
	read  bool
	stamp [3]stamp
	cert  *tls.Certificate
	ca    *x509.CertPool
}

type stamp struct {
	at   time.Time
	size int64
}

// serverCredentials fail when the files cannot be loaded now; later, what was loaded before is good.
func serverCredentials(f Files) (credentials.TransportCredentials, error) {
	if !f.complete() {
		return insecure.NewCredentials(), nil
	}
	m := &material{files: f}
	if _, _, err := m.load(); err != nil {
		return nil, err
	}
	return credentials.NewTLS(&tls.Config{MinVersion: tls.VersionTLS12,
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return m.server() }}), nil
}

func (m *material) server() (*tls.Config, error) {
	cert, ca, err := m.load()
	if err != nil {
		return nil, err
	}
	return &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{*cert}, NextProtos: []string{"h2"},
		ClientCAs: ca, ClientAuth: tls.RequireAndVerifyClientCert}, nil
}

// client are the credentials of one session.
func (m *material) client() (credentials.TransportCredentials, error) {
	if !m.files.complete() {
		return insecure.NewCredentials(), nil
	}
	cert, ca, err := m.load()
	if err != nil {
		return nil, err
	}
	return credentials.NewTLS(&tls.Config{
		MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{*cert},
		// Management addresses are in no certificate, and OVN's own certificates have a common name only: verify does
		// instead what is left out here.
		InsecureSkipVerify: true,
		VerifyConnection:   func(s tls.ConnectionState) error { return verify(s.PeerCertificates, ca, m.files.Name) },
	}), nil
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
		return fmt.Errorf("the agent's certificate is of %q, not of %q: see --nb-cert-common-name",
			chain[0].Subject.CommonName, name)
	}
	return nil
}

// load reads the files if they have changed. Files that are just being replaced may not fit one another: then what was
// read before is good.
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

func (f Files) read() (*tls.Certificate, *x509.CertPool, error) {
	cert, err := tls.LoadX509KeyPair(f.Cert, f.Key)
	if err != nil {
		return nil, nil, fmt.Errorf("load the certificate of the health service: %w: see that %s (--nb-client-cert) "+
			"and %s (--nb-client-privkey) are PEM files that belong together", err, f.Cert, f.Key)
	}
	text, err := os.ReadFile(f.CA)
	if err != nil {
		return nil, nil, fmt.Errorf("load the authority of the health service: %w: give --nb-client-cacert a PEM "+
			"file that can be read", err)
	}
	ca := x509.NewCertPool()
	if !ca.AppendCertsFromPEM(text) {
		return nil, nil, fmt.Errorf("%s has no certificate: give --nb-client-cacert a PEM file", f.CA)
	}
	return &cert, ca, nil
}
