package metrics

import (
	"crypto/tls"
	"log/slog"
	"net"
	"net/http"

	"github.com/egret-net/egret/internal/certs"
)

// Files are what /metrics is served with over TLS, as paths of PEM files. Without any of them there is no TLS.
type Files struct {
	Cert, Key string
	// ClientCA signs the certificates of those who may read; "": anybody may.
	ClientCA string
}

// hasAnyFile says whether TLS is asked for. With only a part of the files nothing is served: a missing file must not
// make secrets public.
func (f Files) hasAnyFile() bool { return f != Files{} }

// credential is the server's side of TLS. Certificates are read again when they have changed. Without a usable
// certificate handshakes fail, and the log says why.
type credential struct{ material *certs.Material }

func newCredential(f Files, log *slog.Logger) *credential {
	return &credential{certs.New(certs.Source{Cert: f.Cert, Key: f.Key, CA: f.ClientCA,
		Of: "the metrics", CertFlag: "--node-server-cert", KeyFlag: "--node-server-privkey",
		CAFlag: "--metrics-client-cacert"}, log)}
}

// listenTLS is a listener whose connections speak TLS. HTTP/2 is not offered: a connection carries one request.
func (c *credential) listenTLS(l net.Listener) net.Listener {
	_, _ = c.configForClient(nil) // the log tells at the start what is wrong
	return tls.NewListener(l, &tls.Config{MinVersion: tls.VersionTLS12, GetConfigForClient: c.configForClient})
}

func (c *credential) configForClient(*tls.ClientHelloInfo) (*tls.Config, error) {
	have, err := c.material.Load()
	if err != nil {
		return nil, err
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"},
		Certificates: []tls.Certificate{*have.Cert}}
	if have.CA != nil {
		// The kubelet, which asks for /healthz, has no certificate. A reader of /metrics needs one, see
		// requireCertificate.
		config.ClientCAs, config.ClientAuth = have.CA, tls.VerifyClientCertIfGiven
	}
	return config, nil
}

// requireCertificate answers those who have shown a certificate of the authority.
func requireCertificate(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.TLS == nil || len(r.TLS.VerifiedChains) == 0 {
			http.Error(w, "metrics are for those who show a certificate of the authority of --metrics-client-cacert",
				http.StatusUnauthorized)
			return
		}
		next(w, r)
	}
}
