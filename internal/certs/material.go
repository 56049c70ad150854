// Package certs reads a certificate, its key and the authority of other sides from files, and reads them again when
// they have changed.
//
// In: paths of PEM files, as a Secret is mounted, and what errors call them. Out: what package crypto/tls works with,
// at any time what the files said when they last fitted one another.
package certs

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io/fs"
	"os"
	"sync"
)

// Source says where the files are.
type Source struct {
	Cert, Key string // paths
	CA        string // path; "": the other side's certificate is not looked at
	// Of is whose certificate it is, as errors say it: "the health service".
	Of string
	// The flags that name the files, as users write them: "--nb-client-cert".
	CertFlag, KeyFlag, CAFlag string
}

// Material is what the files of a source hold. It is safe for concurrent use.
type Material struct {
	source Source
	mu     sync.Mutex
	read   bool
	as     [3]fs.FileInfo // the files when they were last read
	last   Loaded
}

// Loaded is what was read.
type Loaded struct {
	Cert *tls.Certificate
	CA   *x509.CertPool // nil without a CA file
	// Stale says why the files as they are now cannot be used, and what was read before is.
	Stale error
}

// New reads nothing yet.
func New(s Source) *Material { return &Material{source: s} }

// Load reads the files if they have changed. Files that are just being replaced may not fit one another: then what was
// read before is good. Without anything that was read before, the error says which file and flag to look at.
func (m *Material) Load() (Loaded, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.look()
	if m.read && unchanged(now, m.as) {
		return m.last, nil
	}
	loaded, err := m.source.load()
	switch {
	case err == nil:
		m.read, m.as, m.last = true, now, loaded
	case !m.read:
		return Loaded{}, err
	}
	loaded = m.last
	loaded.Stale = err
	return loaded, nil
}

// look follows links: the kubelet exchanges a Secret's files by one.
func (m *Material) look() (as [3]fs.FileInfo) {
	for i, path := range []string{m.source.Cert, m.source.Key, m.source.CA} {
		as[i], _ = os.Stat(path)
	}
	return as
}

func unchanged(a, b [3]fs.FileInfo) bool {
	for i := range a {
		if a[i] == nil || b[i] == nil {
			if a[i] != b[i] {
				return false
			}
		} else if !os.SameFile(a[i], b[i]) || a[i].ModTime() != b[i].ModTime() || a[i].Size() != b[i].Size() {
			return false
		}
	}
	return true
}

func (s Source) load() (Loaded, error) {
	cert, err := tls.LoadX509KeyPair(s.Cert, s.Key)
	if err != nil {
		return Loaded{}, fmt.Errorf("load the certificate of %s: %w: see that %s (%s) and %s (%s) are PEM files that "+
			"belong together", s.Of, err, s.Cert, s.CertFlag, s.Key, s.KeyFlag)
	}
	if s.CA == "" {
		return Loaded{Cert: &cert}, nil
	}
	text, err := os.ReadFile(s.CA)
	if err != nil {
		return Loaded{}, fmt.Errorf("load the authority of %s: %w: give %s a PEM file that can be read", s.Of, err,
			s.CAFlag)
	}
	ca := x509.NewCertPool()
	if !ca.AppendCertsFromPEM(text) {
		return Loaded{}, fmt.Errorf("%s has no certificate: give %s a PEM file", s.CA, s.CAFlag)
	}
	return Loaded{Cert: &cert, CA: ca}, nil
}
