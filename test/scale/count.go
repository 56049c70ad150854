package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"

	"k8s.io/client-go/rest"
)

// counter counts what the API server sends to simulated agents.
type counter struct {
	wire       atomic.Int64 // all that arrives: TLS, HTTP/2, headers and bodies
	mu         sync.Mutex
	byResource map[string]int64 // bodies alone, after decompression
}

func newCounter() *counter { return &counter{byResource: map[string]int64{}} }

// count has one client's connection counted. The connection is the client's own, as that of a real agent is.
func (c *counter) count(config *rest.Config) *rest.Config {
	own := rest.CopyConfig(config)
	own.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := (&net.Dialer{}).DialContext(ctx, network, address)
		return countedConn{conn, &c.wire}, err
	}
	own.Wrap(func(next http.RoundTripper) http.RoundTripper { return countedBodies{next, c} })
	return own
}

func (c *counter) add(resource string, n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.byResource[resource] += int64(n)
}

func (c *counter) bodies() map[string]int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := map[string]int64{}
	for resource, n := range c.byResource {
		out[resource] = n
	}
	return out
}

type countedConn struct {
	net.Conn
	n *atomic.Int64
}

// Read counts what it reads.
func (c countedConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.n.Add(int64(n))
	return n, err
}

type countedBodies struct {
	http.RoundTripper
	c *counter
}

// RoundTrip counts the body of the answer.
func (t countedBodies) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := t.RoundTripper.RoundTrip(r)
	if err == nil {
		resp.Body = countedBody{resp.Body, t.c, resourceOf(r.URL.Path)}
	}
	return resp, err
}

type countedBody struct {
	io.ReadCloser
	c        *counter
	resource string
}

// Read counts what it reads.
func (b countedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.c.add(b.resource, n)
	return n, err
}

// resourceOf returns the plural in a path of the API: /apis/GROUP/VERSION/[namespaces/NAME/]PLURAL.
func resourceOf(path string) string {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	skip := 2 // api, v1
	if parts[0] == "apis" {
		skip = 3
	}
	if len(parts) > skip+2 && parts[skip] == "namespaces" {
		skip += 2
	}
	if len(parts) <= skip {
		return path
	}
	return parts[skip]
}

// usage is what a process has used since it began.
type usage struct {
	cpu  float64 // seconds, of user and system
	read int64   // bytes, from files, pipes and sockets
}

// usageOf reads proc_pid_stat(5) and proc_pid_io(5).
func usageOf(pid int) (u usage, err error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return u, err
	}
	_, after, _ := strings.Cut(string(stat), ") ")
	var user, system float64
	if _, err := fmt.Sscan(strings.Join(strings.Fields(after)[11:13], " "), &user, &system); err != nil {
		return u, fmt.Errorf("stat of process %d: %w", pid, err)
	}
	u.cpu = (user + system) / 100
	counts, err := os.ReadFile(fmt.Sprintf("/proc/%d/io", pid))
	if err == nil {
		_, err = fmt.Sscanf(string(counts), "rchar: %d", &u.read)
	}
	return u, err
}

// memoryOf reads one line of proc_pid_status(5), in MiB.
func memoryOf(pid int, line string) (mib float64, err error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, err
	}
	_, after, _ := strings.Cut(string(status), line+":")
	_, err = fmt.Sscan(after, &mib)
	return mib / 1024, err
}
