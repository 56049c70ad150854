package collectors

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/egret-net/egret/internal/probe/probetest"
)

// TestCertificateExpiry: a certificate that is exchanged is told with the next scrape, an expired one too; without a
// file, or with one that holds none, there is no series.
func TestCertificateExpiry(t *testing.T) {
	dir, own := t.TempDir(), probetest.NewAuthority(t, "own")
	files := own.WriteServer(dir, []string{"egret"})
	registry := prometheus.NewRegistry()
	registry.MustRegister(NewCertificates(map[string]string{"metrics": files.Cert, "health": ""}))
	expectExpiry := func(what string) {
		t.Helper()
		want := ""
		if leaf := readLeaf(files.Cert); leaf != nil {
			want = "# HELP egret_certificate_expiry_timestamp_seconds Time until which the certificate in a file is " +
				"valid, by what it is used for.\n# TYPE egret_certificate_expiry_timestamp_seconds gauge\n" +
				fmt.Sprintf("egret_certificate_expiry_timestamp_seconds{use=\"metrics\"} %d\n", leaf.NotAfter.Unix())
		}
		if err := testutil.GatherAndCompare(registry, strings.NewReader(want)); err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	first := readLeaf(files.Cert)
	expectExpiry("the first")
	own.WriteExpired(dir, "prometheus")
	if now := readLeaf(files.Cert); first == nil || now == nil || !now.NotAfter.Before(first.NotAfter) {
		t.Fatalf("the expired certificate is valid as long as the first: %v %v", first, now)
	}
	expectExpiry("the expired one")
	for _, text := range []string{"none", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"} {
		if err := os.WriteFile(files.Cert, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		expectExpiry(text)
	}
}
