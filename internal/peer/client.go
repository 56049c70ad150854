package peer

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// path is where an agent answers, with the versions as its query.
const path = "/followed"

// askFor bounds the wait for an answer: as long as an agent may take, plus the round trip.
const askFor = answerWithin + 500*time.Millisecond

// maxAnswer bounds an answer, which has no body.
const maxAnswer = 4 << 10

// Ask asks the agent of a node, at an address and from an address of this host. It returns the newest versions that the
// other one has seen.
func Ask(ctx context.Context, node string, from netip.Addr, to netip.AddrPort,
	versions map[string]string) (map[string]string, error) {
	ctx, cancel := context.WithTimeout(ctx, askFor)
	defer cancel()
	u := url.URL{Scheme: "http", Host: to.String(), Path: path, RawQuery: encodeVersions(versions)}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return nil, err
	}
	request.Header.Set(nodeHeader, node)
	dial := func(ctx context.Context, network, to string) (net.Conn, error) {
		return dialFrom(ctx, from, network, to)
	}
	client := http.Client{
		Transport: &http.Transport{DialContext: dial, DisableKeepAlives: true, MaxResponseHeaderBytes: maxAnswer},
		// An answer does not choose what this host asks next.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	answer, err := client.Do(request)
	if err != nil {
		return nil, fmt.Errorf("ask whether another agent has followed: %w", err)
	}
	answer.Body.Close()
	if answer.StatusCode != http.StatusNoContent {
		return nil, fmt.Errorf("the agent at %v has not followed: %s", to, answer.Status)
	}
	if _, is := answer.Header[newestHeader]; !is {
		return nil, fmt.Errorf("what answers at %v is no agent", to)
	}
	return decodeVersions(answer.Header.Get(newestHeader))
}

// Questions come from ports below reservedPorts, for which a program needs its host's rights. A pod's probe has the
// kubelet send what the pod's author writes, to whom he writes, from the same address and a port above.
const lowestPort, reservedPorts = 512, 1024

// portTries bounds the search for a port that no other connection to the same address has.
const portTries = 16

// dialFrom connects from an address of this host and a reserved port.
func dialFrom(ctx context.Context, from netip.Addr, network, to string) (c net.Conn, err error) {
	for range portTries {
		port := lowestPort + rand.IntN(reservedPorts-lowestPort)
		d := net.Dialer{LocalAddr: &net.TCPAddr{IP: from.AsSlice(), Port: port}, Control: sharePort}
		c, err = d.DialContext(ctx, network, to)
		if !errors.Is(err, unix.EADDRINUSE) && !errors.Is(err, unix.EADDRNOTAVAIL) {
			return c, err
		}
	}
	return nil, err
}

// sharePort lets connections to several agents have one port, and follow one in TIME_WAIT.
func sharePort(_, _ string, raw syscall.RawConn) error {
	var err error
	return errors.Join(raw.Control(func(fd uintptr) {
		err = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_REUSEADDR, 1)
	}), err)
}
