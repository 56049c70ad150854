package listen

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
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

// Ear hears claims to watched addresses.
type Ear interface {
	// Watch replaces what is watched: addresses, with the hardware address whose claims to them are no news.
	Watch(own map[netip.Addr]string)
	// Claims are what was heard. When nobody takes them, further ones are dropped: they are repeated.
	Claims() <-chan Claim
}

// backlog is enough for one announcement of each of a thousand addresses.
const backlog = 1024

// ears is what every Ear has.
type ears struct {
	own    atomic.Pointer[map[netip.Addr]string]
	claims chan Claim
}

// Watch replaces what is watched.
func (e *ears) Watch(own map[netip.Addr]string) { e.own.Store(&own) }

// Claims are what was heard.
func (e *ears) Claims() <-chan Claim { return e.claims }

// hear passes on what is news.
func (e *ears) hear(c Claim) {
	own := e.own.Load()
	if own == nil {
		return
	}
	if mac, watched := (*own)[c.IP]; !watched || mac == c.MAC {
		return
	}
	select {
	case e.claims <- c:
	default:
	}
}

// Link is the Ear on a device of this network namespace.
type Link struct {
	ears
	dev string
	log *slog.Logger
}

// New listens on a device until ctx is done; one that is not there is waited for.
func New(ctx context.Context, dev string, log *slog.Logger) *Link {
	l := &Link{ears: ears{claims: make(chan Claim, backlog)}, dev: dev, log: log}
	go l.run(ctx)
	return l
}

// reopen is how long a device that failed is left alone.
const reopen = time.Second

func (l *Link) run(ctx context.Context) {
	for ctx.Err() == nil {
		conn, err := l.open()
		if err == nil {
			stop := context.AfterFunc(ctx, func() { conn.Close() })
			err = l.read(conn)
			stop()
		}
		if ctx.Err() == nil {
			l.log.Warn("other machines' claims to egress IPs are not heard; will try again", "dev", l.dev, "error", err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(reopen):
		}
	}
}

// open makes a socket for all protocols: the kernel hands what a bridge port receives to those for a single one only after the bridge has taken
// it away.
func (l *Link) open() (*packet.Conn, error) {
	dev, err := net.InterfaceByName(l.dev)
	if err != nil {
		return nil, err
	}
	program, err := bpf.Assemble(filter)
	if err != nil {
		return nil, fmt.Errorf("assemble the filter: %w", err)
	}
	return packet.Listen(dev, packet.Raw, unix.ETH_P_ALL, &packet.Config{Filter: program})
}

// read ends with an error when the device goes.
func (l *Link) read(conn *packet.Conn) error {
	defer conn.Close()
	for frame := make([]byte, 512); ; {
		n, _, err := conn.ReadFrom(frame)
		if err != nil {
			return err
		}
		if c, ok := parse(frame[:n]); ok {
			l.hear(c)
		}
	}
}
