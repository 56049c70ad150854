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
	// Connections at one time, of all peers but this host itself: strangers cannot keep the kubelet from asking. One
	// more takes the place of another, if its peer has fewer than that one's; else it is refused.
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
	own    bool // this host itself
	open   map[*conn]bool
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
		admitted, displaced := l.admitConn(c)
		if displaced != nil {
			displaced.Close()
		}
		if admitted != nil {
			return admitted, nil
		}
		c.Close()
	}
}

// admitConn is the connection with its bounds, or nil, and the one whose place it takes, if any. The caller closes that
// one; it no longer counts.
func (l *listener) admitConn(c net.Conn) (admitted, displaced *conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.forgetIdlePeers()
	p := l.peerOf(c)
	if !p.begins.AllowN(l.now(), 1) || len(p.open) >= l.bounds.PerPeer {
		return nil, nil
	}
	if !p.own && l.strangers >= l.bounds.Connections {
		most := l.busiestPeer()
		if len(most.open) <= len(p.open) {
			return nil, nil
		}
		displaced = most.idlestConn()
		l.dropConn(most, displaced)
	}
	admitted = &conn{Conn: c, bytes: p.bytes, now: l.now}
	admitted.release = func() { l.releaseConn(p, admitted) }
	admitted.noteTraffic()
	if p.open[admitted] = true; !p.own {
		l.strangers++
	}
	return admitted, displaced
}

// peerOf is whose connection it is.
func (l *listener) peerOf(c net.Conn) *peer {
	from := addressOf(c.RemoteAddr())
	p := l.peers[from]
	if p == nil {
		p = l.bounds.newPeer()
		p.own = from == addressOf(c.LocalAddr())
		l.peers[from] = p
	}
	return p
}

func (b Bounds) newPeer() *peer {
	return &peer{open: map[*conn]bool{}, begins: rate.NewLimiter(rate.Limit(b.NewPerSecond), 2*b.NewPerSecond),
		bytes: rate.NewLimiter(rate.Limit(b.BytesPerSecond), 2*b.BytesPerSecond)}
}

// busiestPeer is the peer with the most connections, of several the one with the connection that has been idle for
// longest. This host itself is not a peer; there is one.
func (l *listener) busiestPeer() (most *peer) {
	for _, p := range l.peers {
		if p.own || len(p.open) == 0 {
			continue
		}
		if most == nil || len(p.open) > len(most.open) || len(p.open) == len(most.open) &&
			p.idlestConn().moved.Load() < most.idlestConn().moved.Load() {
			most = p
		}
	}
	return most
}

// idlestConn is the connection that nothing went over for longest.
func (p *peer) idlestConn() (idlest *conn) {
	for c := range p.open {
		if idlest == nil || c.moved.Load() < idlest.moved.Load() {
			idlest = c
		}
	}
	return idlest
}

func (l *listener) releaseConn(p *peer, c *conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.dropConn(p, c)
}

// dropConn no longer counts a connection.
func (l *listener) dropConn(p *peer, c *conn) {
	if !p.open[c] {
		return
	}
	if delete(p.open, c); !p.own {
		l.strangers--
	}
}

// sweepEvery is longer than a peer that does nothing takes to have all its tokens again.
const sweepEvery = 5 * time.Second

// forgetIdlePeers forgets peers that nothing is counted of any more.
func (l *listener) forgetIdlePeers() {
	now := l.now()
	if now.Sub(l.swept) < sweepEvery {
		return
	}
	l.swept = now
	for a, p := range l.peers {
		if len(p.open) == 0 && p.begins.TokensAt(now) >= float64(p.begins.Burst()) {
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
