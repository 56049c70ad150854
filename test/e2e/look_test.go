package e2e

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/egret-net/egret/internal/sandbox"
)

const (
	lookTimeout = 5 * time.Second
	// connectTimeout bounds one connection of a pod's, with its answer: two lost packets are too many.
	connectTimeout = 3 * time.Second
	soon           = 15 * time.Second // bounds the second look after a change, on a busy machine
	nodePort       = 7070             // of clientIP on the nodes
)

// place is where connections come from.
type place struct {
	name    string
	get     func(ctx context.Context, urls []string) ([]string, error)
	explain func(endpoint) string // what decides about its packets
}

// endpoint is where connections go to: an HTTP server whose /clientip answers with the client's address:port.
type endpoint struct {
	name string
	ips  []netip.Addr
	port int
}

// from is a sentence: n.from("web").to(c.outside(0)).arrivesAs(addresses).
type from struct {
	t    *testing.T
	from place
}

type fromTo struct {
	from
	to     endpoint
	before []netip.Addr // sources that were right before a change and may still be seen
}

func (n *namespace) from(pod string) from {
	get := getter(func() *http.Client { return n.client(pod) })
	explain := func(to endpoint) string { return n.explain(pod, to) }
	return from{n.t, place{"pod " + n.name + "/" + pod + " on " + n.at[pod], get, explain}}
}

func (c *cluster) from(t *testing.T, m sandbox.Member) from {
	get := getter(func() *http.Client { return clientIn(m.Name) })
	return from{t, place{m.Name, get, func(endpoint) string { return "" }}}
}

// getter opens a connection for each URL, one after the other, and returns the answers.
func getter(client func() *http.Client) func(ctx context.Context, urls []string) ([]string, error) {
	return func(ctx context.Context, urls []string) (answers []string, err error) {
		c := client()
		for _, u := range urls {
			answer, err := fetch(ctx, c, u)
			if err != nil {
				return answers, err
			}
			answers = append(answers, answer)
		}
		return answers, nil
	}
}

func fetch(ctx context.Context, client *http.Client, url string) (string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return "", err
	}
	response, err := client.Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	return string(body), err
}

func (n *namespace) pod(name string) endpoint {
	return endpoint{"pod " + name + " on " + n.at[name], n.ips[name], podPort}
}

func (c *cluster) outside(i int) endpoint {
	return endpoint{c.hosts[i].Name, c.hosts[i].IPs, sandbox.ClientIPPort}
}

// nodeServer is a node's; serveOnNodes must have started it.
func nodeServer(m sandbox.Member) endpoint { return endpoint{m.Name, m.IPs, nodePort} }

func (c *cluster) serveOnNodes(t *testing.T) {
	t.Helper()
	for _, n := range c.nodes {
		serveIn(t, n.Name, nodePort, clientIP)
	}
}

func (f from) to(e endpoint) fromTo { return fromTo{from: f, to: e} }

// formerly says which sources were right before the change that is looked at.
func (f fromTo) formerly(before ...netip.Addr) fromTo {
	f.before = before
	return f
}

// sources opens connections to every address there and returns the source addresses seen, one list for each address.
func (f fromTo) sources(connections int) (seen []netip.Addr, err error) {
	ctx, cancel := context.WithTimeout(f.t.Context(), lookTimeout)
	defer cancel()
	var urls []string
	for _, ip := range f.to.ips {
		urls = append(urls, slices.Repeat([]string{url(ip, f.to.port, "/clientip")}, connections)...)
	}
	answers, err := f.from.from.get(ctx, urls)
	if err != nil {
		return nil, fmt.Errorf("%s to %s: %w", f.from.from.name, f.to.name, err)
	}
	for _, a := range answers {
		source, err := netip.ParseAddrPort(a)
		if err != nil {
			return nil, fmt.Errorf("%s to %s: answer %q: %w", f.from.from.name, f.to.name, a, err)
		}
		seen = append(seen, source.Addr().Unmap())
	}
	return seen, nil
}

// check is nil if one connection to each address arrives with one of these sources.
func (f fromTo) check(want []netip.Addr) error {
	seen, err := f.sources(1)
	if err != nil {
		return err
	}
	return f.compare(seen, want)
}

// compare is nil if all sources that were seen are among these.
func (f fromTo) compare(seen, want []netip.Addr) error {
	for _, source := range seen {
		if !slices.Contains(want, source) {
			return fmt.Errorf("%s to %s arrives as %s, want %v", f.from.from.name, f.to.name, source, want)
		}
	}
	return nil
}

// arrivesAs says that connections arrive with one of these source addresses, now.
func (f fromTo) arrivesAs(want ...netip.Addr) {
	f.t.Helper()
	if err := f.check(want); err != nil {
		f.t.Error(err)
	}
}

// soonArrivesAs is for the first looks after a change: connections soon arrive with these sources. Until then they may
// fail or have those of before; any other source is wrong at once.
func (f fromTo) soonArrivesAs(want ...netip.Addr) {
	f.t.Helper()
	ok := false
	defer func() {
		if !ok {
			f.t.Log(f.from.from.explain(f.to))
		}
	}()
	within(f.t, soon, func() error {
		seen, err := f.sources(1)
		if err == nil {
			err = f.compare(seen, want)
		}
		if wrong := f.compare(seen, slices.Concat(want, f.before)); wrong != nil {
			f.t.Fatalf("%v; before the change %v", wrong, f.before)
		}
		return err
	})
	ok = true
}

// spreadsOver says that many connections arrive with these sources, soon all of them, and never any other. An egress
// node whose label goes and comes back at once takes its half of the tunnels' sessions away for a moment: the other end
// takes it for dead until they are up again, and spreads over the others.
func (f fromTo) spreadsOver(want ...netip.Addr) {
	f.t.Helper()
	within(f.t, soon, func() error {
		seen, err := f.sources(40)
		if err != nil {
			return err
		}
		for _, s := range seen {
			if !slices.Contains(want, s) {
				f.t.Fatalf("%s to %s arrives as %s, want %v", f.from.from.name, f.to.name, s, want)
			}
		}
		for _, w := range want {
			if !slices.Contains(seen, w) {
				return fmt.Errorf("%s to %s: none of %d connections arrives as %s", f.from.from.name, f.to.name,
					len(seen), w)
			}
		}
		return nil
	})
}

// within looks until check is nil, for a bounded time. It is for the time after a change only.
func within(t *testing.T, limit time.Duration, check func() error) time.Duration {
	t.Helper()
	begin := time.Now()
	for {
		err := check()
		if err == nil {
			return time.Since(begin)
		}
		if errors.Is(t.Context().Err(), context.Canceled) || time.Since(begin) > limit {
			t.Fatalf("not within %s: %v", limit, err)
		}
		time.Sleep(50 * time.Millisecond)
	}
}
