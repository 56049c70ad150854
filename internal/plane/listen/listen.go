package listen

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mdlayher/packet"
	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// Claim is one machine saying that it has an address.
type Claim struct {
	IP  netip.Addr
	MAC string // "02:00:00:00:00:01"
}

// Listener receives claims to watched addresses.
type Listener interface {
	// Watch replaces what is watched: addresses, with the hardware address whose claims to them are no news; and the
	// devices, each once.
	Watch(own map[netip.Addr]string, devices []string)
	// Claims are those received. When nobody takes them, further ones are dropped: they are repeated.
	Claims() <-chan Claim
}

// backlog is enough for one announcement of each of a thousand addresses.
const backlog = 1024

// So many claims to one address are passed on at once, and then one in each pause. A machine that floods is a conflict
// like any other, and must not hide those about other addresses.
const (
	burst = 16
	pause = 100 * time.Millisecond
)

// filtered is what every Listener has: claims that are news.
type filtered struct {
	own    atomic.Pointer[map[netip.Addr]string]
	claims chan Claim

	mu     sync.Mutex
	spoken map[netip.Addr]time.Time // when the claims passed on will have had their pauses; for watched addresses
}

func newFiltered() *filtered {
	return &filtered{claims: make(chan Claim, backlog), spoken: map[netip.Addr]time.Time{}}
}

// watchOnly replaces what is watched.
func (f *filtered) watchOnly(own map[netip.Addr]string) {
	f.own.Store(&own)
	f.mu.Lock()
	defer f.mu.Unlock()
	maps.DeleteFunc(f.spoken, func(ip netip.Addr, _ time.Time) bool { _, watched := own[ip]; return !watched })
}

// mayPass says whether one more claim to an address may be passed on now.
func (f *filtered) mayPass(ip netip.Addr, now time.Time) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	until := f.spoken[ip]
	if until.Before(now) {
		until = now
	}
	if until.Sub(now) >= burst*pause {
		return false
	}
	f.spoken[ip] = until.Add(pause)
	return true
}

// Claims are those received.
func (f *filtered) Claims() <-chan Claim { return f.claims }

// receiveClaim passes on what is news.
func (f *filtered) receiveClaim(c Claim) {
	own := f.own.Load()
	if own == nil {
		return
	}
	if mac, watched := (*own)[c.IP]; !watched || mac == c.MAC || !f.mayPass(c.IP, time.Now()) {
		return
	}
	select {
	case f.claims <- c:
	default:
	}
}

// Link is the Listener on devices of this network namespace.
type Link struct {
	*filtered
	ctx     context.Context
	instead map[string]string
	log     *slog.Logger

	mu   sync.Mutex
	open map[string]context.CancelFunc // by device
}

// New listens until ctx is done; devices that are not there are waited for. instead names, for a device, the one whose
// frames are received instead: a bridge hands frames of its ports to nobody.
func New(ctx context.Context, instead map[string]string, log *slog.Logger) *Link {
	return &Link{filtered: newFiltered(), ctx: ctx, instead: instead, log: log, open: map[string]context.CancelFunc{}}
}

// Watch replaces what is watched.
func (l *Link) Watch(own map[netip.Addr]string, devices []string) {
	l.watchOnly(own)
	l.mu.Lock()
	defer l.mu.Unlock()
	for dev, stop := range l.open {
		if !slices.Contains(devices, dev) {
			stop()
			delete(l.open, dev)
		}
	}
	for _, dev := range devices {
		if l.open[dev] != nil {
			continue
		}
		ctx, stop := context.WithCancel(l.ctx)
		l.open[dev] = stop
		go l.listenUntilDone(ctx, cmp.Or(l.instead[dev], dev))
	}
}

// reopen is how long a device that failed is left alone.
const reopen = time.Second

func (l *Link) listenUntilDone(ctx context.Context, dev string) {
	for ctx.Err() == nil {
		conn, err := listenOn(dev)
		if err == nil {
			stop := context.AfterFunc(ctx, func() { conn.Close() })
			err = l.readFrames(conn)
			stop()
		}
		if ctx.Err() == nil {
			l.log.Warn("other machines' claims to egress IPs are not received; will try again",
				"dev", dev, "error", err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(reopen):
		}
	}
}

// listenOn makes a socket for all protocols: the kernel hands what a bridge port receives to those for a single one
// only after the bridge has taken it away.
func listenOn(name string) (*packet.Conn, error) {
	dev, err := net.InterfaceByName(name)
	if err != nil {
		return nil, err
	}
	program, err := bpf.Assemble(filter)
	if err != nil {
		return nil, fmt.Errorf("assemble the filter: %w", err)
	}
	return packet.Listen(dev, packet.Raw, unix.ETH_P_ALL, &packet.Config{Filter: program})
}

// readFrames ends with an error when the device goes.
func (l *Link) readFrames(conn *packet.Conn) error {
	defer conn.Close()
	for frame := make([]byte, 512); ; {
		n, _, err := conn.ReadFrom(frame)
		if err != nil {
			return err
		}
		if c, ok := parseClaim(frame[:n]); ok {
			l.receiveClaim(c)
		}
	}
}
