package certs_test

import (
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/egret-net/egret/internal/certs"
	"github.com/egret-net/egret/internal/probe/probetest"
)

// TestHalfReplaced: while the files do not fit one another, what was read before is good and the error names what to
// look at; with the last of them in place, the new ones count. A folder that is exchanged as the kubelet does it, by a
// link, is seen.
func TestHalfReplaced(t *testing.T) {
	dir, a := t.TempDir(), probetest.NewAuthority(t, "a")
	current, next, link := filepath.Join(dir, "1"), filepath.Join(dir, "2"), filepath.Join(dir, "data")
	for _, d := range []string{current, next} {
		if err := os.Mkdir(d, 0o700); err != nil {
			t.Fatal(err)
		}
		a.Write(d, filepath.Base(d))
	}
	pointTo(t, link, current)
	m := certs.New(certs.Source{Cert: link + "/tls.crt", Key: link + "/tls.key", CA: link + "/ca.crt",
		Of: "the test", CertFlag: "--cert", KeyFlag: "--key", CAFlag: "--ca"}, slog.New(slog.DiscardHandler))
	expect(t, m, "1", "")
	pointTo(t, link, next)
	expect(t, m, "2", "")

	if err := os.Rename(current+"/tls.key", next+"/tls.key"); err != nil {
		t.Fatal(err)
	}
	expect(t, m, "2", "/tls.crt (--cert) and "+link+"/tls.key (--key) are PEM files that belong together")
	if err := os.RemoveAll(next); err != nil {
		t.Fatal(err)
	}
	expect(t, m, "2", "no such file")
	a.Write(current, "3")
	pointTo(t, link, current)
	expect(t, m, "3", "")
}

// TestExpired: a certificate that has expired does not take the place of one that is good, and the log says so once;
// alone it is better than none.
func TestExpired(t *testing.T) {
	dir, a, log := t.TempDir(), probetest.NewAuthority(t, "a"), &strings.Builder{}
	load := func() *certs.Material { return materialIn(dir, log) }
	a.Write(dir, "good")
	m := load()
	expect(t, m, "good", "")
	a.WriteExpired(dir, "expired")
	for range 3 {
		expect(t, m, "good", "/tls.crt (--cert) is valid from ")
	}
	expect(t, load(), "expired", "")
	a.Write(dir, "next")
	expect(t, m, "next", "")
	text := log.String()
	for _, said := range []string{"the certificate of before is used for the test",
		"the certificate as it is now is used for the test"} {
		if strings.Count(text, said) != 1 {
			t.Errorf("the log does not say once %q:\n%s", said, text)
		}
	}
}

// TestExpiredAtFirst: the log says once of a certificate that has expired when it is first read that it has; another
// authority beside it counts all the same, for nothing better is there.
func TestExpiredAtFirst(t *testing.T) {
	dir, a, b, log := t.TempDir(), probetest.NewAuthority(t, "a"), probetest.NewAuthority(t, "b"), &strings.Builder{}
	a.WriteExpired(dir, "expired")
	m := materialIn(dir, log)
	for range 3 {
		expect(t, m, "expired", "")
	}
	if strings.Count(log.String(), "/tls.crt (--cert) is valid from ") != 1 {
		t.Errorf("the log says %q", log)
	}
	before, err := m.Load()
	if err != nil {
		t.Fatal(err)
	}
	other := t.TempDir()
	b.Write(other, "other")
	if err := os.Rename(other+"/ca.crt", dir+"/ca.crt"); err != nil {
		t.Fatal(err)
	}
	if now, err := m.Load(); err != nil || now.CA.Equal(before.CA) {
		t.Errorf("the authority of before counts still: %v, %v", err, now.Stale)
	}
}

// materialIn is what is in a folder; the log says what is wrong with it.
func materialIn(dir string, log io.Writer) *certs.Material {
	return certs.New(certs.Source{Cert: dir + "/tls.crt", Key: dir + "/tls.key", CA: dir + "/ca.crt",
		Of: "the test", CertFlag: "--cert", KeyFlag: "--key", CAFlag: "--ca"}, slog.New(slog.NewTextHandler(log, nil)))
}

// expect wants the certificate of a name, and what is said of the files as they are now.
func expect(t *testing.T, m *certs.Material, name, stale string) {
	t.Helper()
	have, err := m.Load()
	if err != nil {
		t.Fatal(err)
	}
	if have.Cert.Leaf.Subject.CommonName != name || (have.Stale == nil) != (stale == "") ||
		stale != "" && !strings.Contains(have.Stale.Error(), stale) {
		t.Errorf("certificate of %s, %v; want %s, %q", have.Cert.Leaf.Subject.CommonName, have.Stale, name, stale)
	}
}

func pointTo(t *testing.T, link, dir string) {
	t.Helper()
	if err := os.Symlink(dir, link+".new"); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(link+".new", link); err != nil {
		t.Fatal(err)
	}
}
