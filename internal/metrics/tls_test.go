package metrics

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/egret-net/egret/internal/probe"
	"github.com/egret-net/egret/internal/probe/probetest"
)

// said is a log.
type said struct {
	mu   sync.Mutex
	text strings.Builder
}

func (s *said) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(b)
}

// count says how many lines have a text.
func (s *said) count(text string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Count(s.text.String(), text)
}

func (s *said) handler() slog.Handler { return slog.NewTextHandler(s, nil) }

var here = net.IPv4(127, 0, 0, 1)

// server are files of a certificate for this host, whose readers are to have one of an authority.
func server(of probe.Files, readers string) Files {
	return Files{Cert: of.Cert, Key: of.Key, ClientCA: readers}
}

// client trusts an authority, and shows what the files hold.
func client(t *testing.T, trust *probetest.Authority, show ...probe.Files) *http.Client {
	t.Helper()
	config := &tls.Config{RootCAs: trust.Pool(), ClientSessionCache: tls.NewLRUClientSessionCache(8)}
	for _, f := range show {
		cert, err := tls.LoadX509KeyPair(f.Cert, f.Key)
		if err != nil {
			t.Fatal(err)
		}
		// shown whatever authorities the server names
		config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &cert, nil }
	}
	return &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{TLSClientConfig: config,
		ForceAttemptHTTP2: true}}
}

// ask is the status and the text of an answer, or that there is none.
func ask(c *http.Client, url string) (int, string, error) {
	answer, err := c.Get(url)
	if err != nil {
		return 0, "", err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if answer.ProtoMajor != 1 {
		err = errors.Join(err, fmt.Errorf("answered by %s", answer.Proto))
	}
	return answer.StatusCode, string(text), err
}

// expect asks, and wants a status, or no connection with 0.
func expect(t *testing.T, what string, c *http.Client, url string, want int) {
	t.Helper()
	status, text, err := ask(c, url)
	if status != want || (err == nil) != (want != 0) {
		t.Errorf("%s: %d %q %v, want %d", what, status, text, err, want)
	}
}

// Readers need a certificate of the authority; the kubelet, which asks for life, needs none. Nobody is answered without
// TLS.
func TestReadersAreAuthenticated(t *testing.T) {
	own, readers, stranger := probetest.NewAuthority(t, "own"), probetest.NewAuthority(t, "readers"),
		probetest.NewAuthority(t, "stranger")
	prometheus, other := readers.Write(t.TempDir(), "prometheus"), stranger.Write(t.TempDir(), "prometheus")
	host := readers.WriteServer(t.TempDir(), []string{"web"})
	files := own.WriteServer(t.TempDir(), nil, here)
	at := "://" + startWith(t, server(files, prometheus.CA), newCounted(), well, slog.DiscardHandler)

	expect(t, "a reader", client(t, own, prometheus), "https"+at+"/metrics", http.StatusOK)
	expect(t, "nobody in particular", client(t, own), "https"+at+"/metrics", http.StatusUnauthorized)
	expect(t, "the kubelet", client(t, own), "https"+at+"/healthz", http.StatusOK)
	expect(t, "one of another authority", client(t, own, other), "https"+at+"/metrics", 0)
	expect(t, "a server of the authority", client(t, own, host), "https"+at+"/metrics", 0)
	expect(t, "the server itself", client(t, own, files), "https"+at+"/metrics", 0)
	expect(t, "one who trusts others", client(t, readers, prometheus), "https"+at+"/metrics", 0)
	expect(t, "one without TLS", http.DefaultClient, "http"+at+"/metrics", http.StatusBadRequest)
	expect(t, "life without TLS", http.DefaultClient, "http"+at+"/healthz", http.StatusBadRequest)
	if status, text, err := ask(client(t, own, prometheus), "https"+at+"/metrics"); !strings.Contains(text,
		"\nanswer 42\n") {
		t.Errorf("%d %q %v", status, text, err)
	}
}

// Without an authority of readers anybody may read, by TLS.
func TestAnybodyByTLS(t *testing.T) {
	own := probetest.NewAuthority(t, "own")
	at := startWith(t, server(own.WriteServer(t.TempDir(), nil, here), ""), newCounted(), well, slog.DiscardHandler)
	expect(t, "anybody", client(t, own), "https://"+at+"/metrics", http.StatusOK)
	expect(t, "one without TLS", http.DefaultClient, "http://"+at+"/metrics", http.StatusBadRequest)
}

// A Secret that is not there yet, is broken, or is exchanged: metrics are never served without TLS, the log says each
// fault once with the flag to look at, and what is right counts from the next connection on.
func TestFilesComeAndGo(t *testing.T) {
	first, second, log := probetest.NewAuthority(t, "first"), probetest.NewAuthority(t, "second"), &said{}
	dir, old := t.TempDir(), first.Write(t.TempDir(), "prometheus")
	files := first.WriteServer(dir, nil, here)
	for _, path := range []string{files.Cert, files.Key, files.CA} {
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
	at := startWith(t, server(files, files.CA), newCounted(), well, log.handler())
	url := "https://" + at + "/metrics"
	before := client(t, first, old)
	for range 3 {
		expect(t, "no files", before, url, 0)
		expect(t, "no files, without TLS", http.DefaultClient, "http://"+at+"/metrics", http.StatusBadRequest)
	}
	if n := log.count("there is no certificate of the metrics"); n != 1 || log.count("--node-server-cert") != 1 {
		t.Errorf("the log says %d times that there is none: %s", n, log.text.String())
	}

	first.WriteServer(dir, nil, here)
	expect(t, "the files are there", before, url, http.StatusOK)
	if log.count("certificate as it is now") != 1 {
		t.Errorf("the log does not say that there is one: %s", log.text.String())
	}
	if err := os.WriteFile(files.CA, []byte("none"), 0o600); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		expect(t, "the authority is broken", before, url, http.StatusOK)
	}
	if n := log.count("certificate of before"); n != 1 || log.count("--metrics-client-cacert") != 1 {
		t.Errorf("the log says %d times that the authority is broken: %s", n, log.text.String())
	}

	second.WriteServer(dir, nil, here)
	expect(t, "the new authority", client(t, second, second.Write(t.TempDir(), "prometheus")), url, http.StatusOK)
	before.Transport.(*http.Transport).TLSClientConfig.RootCAs = second.Pool()
	expect(t, "who has been here with a certificate of the former authority", before, url, 0)
}

// Neither certificate nor key alone, nor an authority alone, has metrics served without TLS.
func TestPartOfTheFiles(t *testing.T) {
	all := probetest.NewAuthority(t, "own").WriteServer(t.TempDir(), nil, here)
	for _, part := range []Files{{Cert: all.Cert}, {Key: all.Key}, {ClientCA: all.CA}} {
		at := startWith(t, part, newCounted(), well, slog.DiscardHandler)
		expect(t, fmt.Sprint(part), http.DefaultClient, "http://"+at+"/metrics", http.StatusBadRequest)
	}
}

// Strangers who begin no TLS, or begin and do not go on, are let go of, and fill no log.
func TestHandshakesAreBounded(t *testing.T) {
	files, log := probetest.NewAuthority(t, "own").WriteServer(t.TempDir(), nil, here), &said{}
	at := startWith(t, server(files, ""), newCounted(), well, log.handler())
	for name, begin := range map[string]string{"silent": "", "half": "\x16\x03\x01\x02\x00\x01"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, err := net.Dial("tcp", at)
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			_ = c.SetDeadline(time.Now().Add(20 * time.Second))
			if _, err := io.WriteString(c, begin); err != nil {
				t.Fatal(err)
			}
			if _, err := io.Copy(io.Discard, c); errors.Is(err, os.ErrDeadlineExceeded) {
				t.Error("the connection stays open")
			}
			if log.count("handshake") > 0 {
				t.Error(log.text.String())
			}
		})
	}
}

// /healthz has an address of its own, where nothing else is said, and the certificate does not count.
func TestHealthAlone(t *testing.T) {
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	at := free.Addr().String()
	taken := ServeHealth(t.Context(), at, well)
	if taken == nil || !strings.Contains(taken.Error(), "--healthz-bind-address") {
		t.Errorf("an address that is taken: %v", taken)
	}
	free.Close()
	ended := make(chan error, 1)
	go func() { ended <- ServeHealth(t.Context(), at, well) }()
	t.Cleanup(func() {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	statuses := []int{}
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if status, _, err := ask(http.DefaultClient, "http://"+at+"/healthz"); err == nil {
			statuses = append(statuses, status)
			break
		}
	}
	for _, path := range []string{"/readyz", "/metrics"} {
		status, _, _ := ask(http.DefaultClient, "http://"+at+path)
		statuses = append(statuses, status)
	}
	if !slices.Equal(statuses, []int{http.StatusOK, http.StatusOK, http.StatusNotFound}) {
		t.Errorf("/healthz, /readyz and /metrics: %d", statuses)
	}
}
