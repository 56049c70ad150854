package probe

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"

	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/egret-net/egret/internal/certs"
)

// Files are the TLS material of the health service, as paths. With all of them each side shows its certificate and
// wants one of the authority from the other; otherwise neither speaks TLS.
type Files struct {
	Cert, Key, CA string
	// Name that an agent's certificate must have, as a DNS name or as its common name; "": any.
	Name string
}

// isComplete is the rule by which both sides know whether they speak TLS.
func (f Files) isComplete() bool { return f.Cert != "" && f.Key != "" && f.CA != "" }

// certSource are the files, as the programs' flags name them.
func (f Files) certSource() certs.Source {
	return certs.Source{Cert: f.Cert, Key: f.Key, CA: f.CA, Of: "the health service", CertFlag: "--nb-client-cert",
		KeyFlag: "--nb-client-privkey", CAFlag: "--nb-client-cacert"}
}

// material is what the files hold, or nothing if they are not complete.
type material struct {
	files Files
	*certs.Material
}

func newMaterial(f Files, log *slog.Logger) *material {
	return &material{f, certs.New(f.certSource(), log)}
}

// serverCredentials fail when the files cannot be loaded now; later, what was loaded before is good.
func serverCredentials(f Files, log *slog.Logger) (credentials.TransportCredentials, error) {
	if !f.isComplete() {
		return insecure.NewCredentials(), nil
	}
	m := newMaterial(f, log)
	if _, err := m.Load(); err != nil {
		return nil, err
	}
	return credentials.NewTLS(&tls.Config{MinVersion: tls.VersionTLS12,
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return m.serverConfig() }}), nil
}

func (m *material) serverConfig() (*tls.Config, error) {
	have, err := m.Load()
	if err != nil {
		return nil, err
	}
	return &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{*have.Cert},
		NextProtos: []string{"h2"}, ClientCAs: have.CA, ClientAuth: tls.RequireAndVerifyClientCert}, nil
}

// clientCredentials are the credentials of one session.
func (m *material) clientCredentials() (credentials.TransportCredentials, error) {
	if !m.files.isComplete() {
		return insecure.NewCredentials(), nil
	}
	have, err := m.Load()
	if err != nil {
		return nil, err
	}
	return credentials.NewTLS(&tls.Config{
		MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{*have.Cert},
		// Management addresses are in no certificate, and OVN's own certificates have a common name only: verify does
		// instead what is left out here.
		InsecureSkipVerify: true,
		VerifyConnection: func(s tls.ConnectionState) error {
			return verifyChain(s.PeerCertificates, have.CA, m.files.Name)
		},
	}), nil
}

func verifyChain(chain []*x509.Certificate, ca *x509.CertPool, name string) error {
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
