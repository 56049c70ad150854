package main

import (
	"bytes"
	"crypto/x509"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"testing"

	"k8s.io/client-go/tools/clientcmd"
)

func testConfig(t *testing.T) config {
	t.Helper()
	c, err := parseConfig([]string{
		"--dir", t.TempDir(), "--bind", "172.18.0.250", "--service-cidrs", "10.96.0.0/16,fd00:96::/112",
		"--extra-sans", "api.example,192.0.2.7", "--forward-url", "https://127.0.0.1:40123",
	})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestServingCertificateNamesEveryWayToTheServer(t *testing.T) {
	c := testConfig(t)
	if err := ensureCredentials(c); err != nil {
		t.Fatal(err)
	}
	cert, ca := readCert(t, c.pkiFile("apiserver.crt")), readCert(t, c.pkiFile("ca.crt"))
	roots := x509.NewCertPool()
	roots.AddCert(ca)
	for _, name := range []string{"localhost", "127.0.0.1", "::1", "172.18.0.250", "10.96.0.1", "fd00:96::1",
		"kubernetes.default.svc", "api.example", "192.0.2.7"} {
		if _, err := cert.Verify(x509.VerifyOptions{Roots: roots, DNSName: name}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := cert.VerifyHostname("192.0.2.8"); err == nil {
		t.Error("an address nobody asked for is accepted")
	}
}

func TestCredentialsAreKept(t *testing.T) {
	c := testConfig(t)
	snapshot := func() map[string][]byte {
		if err := ensureCredentials(c); err != nil {
			t.Fatal(err)
		}
		files := map[string][]byte{}
		for _, f := range []string{"ca.crt", "apiserver.crt", "admin.key", "sa.key"} {
			content, err := os.ReadFile(c.pkiFile(f))
			if err != nil {
				t.Fatal(err)
			}
			files[f] = content
		}
		return files
	}
	old := snapshot()
	for f, have := range snapshot() {
		if !bytes.Equal(have, old[f]) {
			t.Errorf("%s changed at the second start", f)
		}
	}
	c.bind = netip.MustParseAddr("172.18.0.251")
	moved := snapshot()
	if bytes.Equal(moved["apiserver.crt"], old["apiserver.crt"]) {
		t.Error("the serving certificate does not follow the bind address")
	}
	if !bytes.Equal(moved["ca.crt"], old["ca.crt"]) {
		t.Error("the CA changed with the bind address")
	}
}

func TestCertificateOfAnotherAuthorityIsReplaced(t *testing.T) {
	c := testConfig(t)
	if err := ensureCredentials(c); err != nil {
		t.Fatal(err)
	}
	old := readCert(t, c.pkiFile("admin.crt"))
	if err := os.Remove(c.pkiFile("ca.crt")); err != nil {
		t.Fatal(err)
	}
	if err := ensureCredentials(c); err != nil {
		t.Fatal(err)
	}
	have := readCert(t, c.pkiFile("admin.crt"))
	if have.Equal(old) {
		t.Error("a certificate of the lost CA was kept")
	}
}

func TestIssueSignsAKubeletCertificate(t *testing.T) {
	c := testConfig(t)
	if err := ensureCredentials(c); err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(t.TempDir(), "n1")
	err := runIssue([]string{"--dir", c.dir, "--cn", "system:node:n1", "--org", "system:nodes", "--out", out,
		"--server", c.serverURL()})
	if err != nil {
		t.Fatal(err)
	}
	cert := readCert(t, out+".crt")
	if cert.Subject.CommonName != "system:node:n1" || len(cert.Subject.Organization) != 1 ||
		cert.Subject.Organization[0] != "system:nodes" {
		t.Errorf("subject %v", cert.Subject)
	}
	roots := x509.NewCertPool()
	roots.AddCert(readCert(t, c.pkiFile("ca.crt")))
	if _, err := cert.Verify(x509.VerifyOptions{Roots: roots,
		KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}); err != nil {
		t.Error(err)
	}
	k, err := clientcmd.BuildConfigFromFlags("", out+".kubeconfig")
	if err != nil {
		t.Fatal(err)
	}
	if k.Host != "https://172.18.0.250:6443" {
		t.Errorf("kubeconfig leads to %s", k.Host)
	}
}

func TestAdminKubeconfigLeadsToTheForwarder(t *testing.T) {
	c := testConfig(t)
	if err := ensureCredentials(c); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"admin": "https://127.0.0.1:40123",
		"admin-internal": "https://172.18.0.250:6443"} {
		k, err := clientcmd.BuildConfigFromFlags("", c.kubeconfig(name))
		if err != nil {
			t.Fatal(err)
		}
		if k.Host != want {
			t.Errorf("%s leads to %s, want %s", name, k.Host, want)
		}
	}
}

func TestDamagedKeyIsNamed(t *testing.T) {
	c := testConfig(t)
	if err := ensureCredentials(c); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(c.pkiFile("ca.key"), []byte("not a key"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := ensureCredentials(c); err == nil || !bytes.Contains([]byte(err.Error()), []byte(c.pkiFile("ca.key"))) {
		t.Errorf("have %v, want an error that names the file", err)
	}
}

func TestConfigRefuses(t *testing.T) {
	for name, args := range map[string][]string{
		"no dir":   {"--bind", "172.18.0.250"},
		"no bind":  {"--dir", "/x"},
		"loopback": {"--dir", "/x", "--bind", "127.0.0.1"},
		"three networks": {"--dir", "/x", "--bind", "172.18.0.250", "--service-cidrs",
			"10.0.0.0/16,fd00::/112,10.1.0.0/16"},
		"families in disorder": {"--dir", "/x", "--bind", "fd00:18::1", "--service-cidrs", "10.0.0.0/16"},
	} {
		if _, err := parseConfig(args); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

func TestIPv6URL(t *testing.T) {
	c, err := parseConfig([]string{"--dir", "/x", "--bind", "fd00:18::1", "--service-cidrs", "fd00:96::/112"})
	if err != nil {
		t.Fatal(err)
	}
	if want := "https://[fd00:18::1]:6443"; c.serverURL() != want {
		t.Errorf("have %s, want %s", c.serverURL(), want)
	}
	if ips := servingSubject(c).ips; !ips[len(ips)-1].Equal(net.ParseIP("fd00:96::1")) {
		t.Errorf("no address of the kubernetes Service in %v", ips)
	}
}

func readCert(t *testing.T, file string) *x509.Certificate {
	t.Helper()
	cert, err := readCertificate(file)
	if err != nil {
		t.Fatal(err)
	}
	return cert
}
