package limit

import (
	"net"
	"net/netip"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// Bounds are a listener's. All are at least 1.
type Bounds struct {
	// Connections at one time, of all peers but this host itself: strangers cannot keep the kubelet from asking.
	Connections int
	// PerPeer are connections of one peer at one time.
	PerPeer int
	// NewPerSecond are those that a peer may begin in a second, with twice as many at once.
	NewPerSecond int
	// BytesPerSecond are those that are read of one peer, over all its connections, with twice as many at once.
	BytesPerSecond int
}

// Listen bounds the connections that l accepts.
func Listen(l net.Listener, b Bounds) net.Listener {
	return &listener{Listener: l, bounds: b, peers: map[netip.Addr]*peer{}, now: time.Now}
}

type listener struct {
	net.Listener
	bounds Bounds
	now    func() time.Time

	mu        sync.Mutex
	strangers int // connections of other hosts
	peers     map[netip.Addr]*peer
	swept     time.Time
}

// peer is one that has connections, or had some so lately that its next ones are bounded on account of them.
type peer struct {
	open   int
	begins *rate.Limiter
	bytes  *rate.Limiter
}

// Accept returns the next connection within the bounds.
func (l *listener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if admitted := l.admit(c); admitted != nil {
			return admitted, nil
		}
		c.Close()
	}
}

// admit is the connection with its bounds, or nil.
func (l *listener) admit(c net.Conn) net.Conn {
	from, own := addressOf(c.RemoteAddr()), addressOf(c.RemoteAddr()) == addressOf(c.LocalAddr())
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sweep()
	p := l.peers[from]
	if p == nil {
		p = l.bounds.peer()
		l.peers[from] = p
	}
	if !p.begins.AllowN(l.now(), 1) || p.open >= l.bounds.PerPeer || !own && l.strangers >= l.bounds.Connections {
		return nil
	}
	p.open++
	if !own {
		l.strangers++
	}
	return &conn{Conn: c, bytes: p.bytes, release: sync.OnceFunc(func() { l.release(p, own) })}
}

func (b Bounds) peer() *peer {
	return &peer{begins: rate.NewLimiter(rate.Limit(b.NewPerSecond), 2*b.NewPerSecond), bytes: rate.NewLimiter(rate.Limit(b.BytesPerSecond), 2*b.BytesPerSecond)}
}

func (l *listener) release(p *peer, own bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	p.open--
	if !own {
		l.strangers--
	}
}

// sweepEvery is longer than a peer that does nothing takes to have all its tokens again.
const sweepEvery = 5 * time.Second

// sweep forgets peers that nothing is counted of any more.
func (l *listener) sweep() {
	now := l.now()
	if now.Sub(l.swept) < sweepEvery {
		return
	}
	l.swept = now
	for a, p := range l.peers {
		if p.open == 0 && p.begins.TokensAt(now) >= float64(p.begins.Burst()) {
			delete(l.peers, a)
		}
	}
}

func addressOf(a net.Addr) netip.Addr {
	at, err := netip.ParseAddrPort(a.String())
	if err != nil {
		return netip.Addr{}
	}
	return at.Addr().Unmap()
}
