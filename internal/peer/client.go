package peer

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"time"
)

// path is where an agent answers, with the versions as its query.
const path = "/followed"

// askFor is how long an answer is waited for: what an agent waits for, and the way.
const askFor = answerWithin + 500*time.Millisecond

// maxAnswer bounds an answer, which has no body.
const maxAnswer = 4 << 10

// Ask asks the agent at an address, from an address of this host. It returns the newest versions that the other one has
// seen; an agent of a version before says none.
func Ask(ctx context.Context, from netip.Addr, to netip.AddrPort, versions map[string]string) (map[string]string,
	error) {
	ctx, cancel := context.WithTimeout(ctx, askFor)
	defer cancel()
	u := url.URL{Scheme: "http", Host: to.String(), Path: path, RawQuery: encode(versions)}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return nil, err
	}
	dialer := &net.Dialer{LocalAddr: &net.TCPAddr{IP: from.AsSlice()}}
	client := http.Client{
		Transport: &http.Transport{DialContext: dialer.DialContext, DisableKeepAlives: true,
			MaxResponseHeaderBytes: maxAnswer},
		// Whoever answers does not choose what this host asks next.
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
	return decode(answer.Header.Get(newestHeader))
}
