// Package certs reads a certificate, its key and the authority of other sides from files, and reads them again when
// they have changed.
//
// In: paths of PEM files, as a Secret is mounted, and what errors call them. Out: configuration for package crypto/tls,
// from the files as they were when they last fitted one another and held a certificate of that day. The log says once
// what is wrong with them.
package certs

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"sync"
	"time"
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
	log    *slog.Logger
	mu     sync.Mutex
	said   string // the fault that the log names; "" if it names none
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
func New(s Source, log *slog.Logger) *Material { return &Material{source: s, log: log} }

// Load reads the files if they have changed. Files that are just being replaced may not fit one another, and a
// certificate that is put there may have expired: then what was read before is used, if it is better. Without anything
// that was read before, the error says which file and flag to look at.
func (m *Material) Load() (Loaded, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	out, err := m.loadChanged()
	m.logProblemOnce(m.currentProblem(out, err))
	return out, err
}

// currentProblem is what is wrong with what is used, or the error is nil.
func (m *Material) currentProblem(used Loaded, err error) (what string, wrong error) {
	switch {
	case err != nil:
		return "there is no certificate of " + m.source.Of + " that can be used", err
	case used.Stale != nil:
		return "the certificate of before is used for " + m.source.Of, used.Stale
	}
	return "others refuse the certificate of " + m.source.Of, m.source.outOfDate(used.Cert.Leaf, time.Now())
}

// logProblemOnce logs what is wrong, once, and that it is over.
func (m *Material) logProblemOnce(what string, wrong error) {
	switch {
	case wrong == nil && m.said != "":
		m.said = ""
		m.log.Info("the certificate as it is now is used for " + m.source.Of)
	case wrong != nil && m.said != wrong.Error():
		m.said = wrong.Error()
		m.log.Error(what, "error", wrong)
	}
}

func (m *Material) loadChanged() (Loaded, error) {
	now := m.statFiles()
	if m.read && sameFiles(now, m.as) {
		return m.last, nil
	}
	loaded, err := m.source.loadFiles()
	if t := time.Now(); err == nil && m.read && m.source.outOfDate(m.last.Cert.Leaf, t) == nil {
		err = m.source.outOfDate(loaded.Cert.Leaf, t)
	}
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

// outOfDate says that a certificate is not valid at a time. It is used where nothing better was there: a reader of it
// says so, and another authority next to it counts.
func (s Source) outOfDate(c *x509.Certificate, now time.Time) error {
	if !now.Before(c.NotBefore) && !now.After(c.NotAfter) {
		return nil
	}
	return fmt.Errorf("the certificate of %s in %s (%s) is valid from %s to %s: replace it", s.Of, s.Cert, s.CertFlag,
		c.NotBefore.UTC().Format(time.DateTime), c.NotAfter.UTC().Format(time.DateTime))
}

// statFiles follows links: the kubelet exchanges a Secret's files by one.
func (m *Material) statFiles() (as [3]fs.FileInfo) {
	for i, path := range []string{m.source.Cert, m.source.Key, m.source.CA} {
		as[i], _ = os.Stat(path)
	}
	return as
}

func sameFiles(a, b [3]fs.FileInfo) bool {
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

func (s Source) loadFiles() (Loaded, error) {
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
