package vm

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"time"

	"github.com/egret-net/egret/test/traffic"
)

// watch is a capture of what selected pods send, from its begin until close.
type watch struct {
	l    *kernelLab
	seen *traffic.Capture
	stop context.CancelFunc
}

// pace is the distance of a pod's datagrams, in an emulated machine.
const pace = 100 * time.Millisecond

// watched has the selected pods send datagrams to the host outside, each from a new port and each from one port for
// ever, and sees all that come out of the nodes.
func (l *kernelLab) watched() *watch {
	l.t.Helper()
	drop, err := traffic.Swallow(l.ExternalHosts()[0].Name)
	if err != nil {
		l.t.Fatal(err)
	}
	l.t.Cleanup(drop)
	seen, err := traffic.Listen(l.Cluster)
	if err != nil {
		l.t.Fatal(err)
	}
	l.t.Cleanup(seen.Close)
	ctx, stop := context.WithCancel(l.t.Context())
	for _, p := range []pod{l.far, l.near} {
		for _, ip := range l.outside {
			to := netip.AddrPortFrom(ip, traffic.Port)
			go func() { _ = l.inPod(p, func() error { return send(ctx, p.name, to) }) }()
		}
	}
	return &watch{l, seen, stop}
}

// send goes on until the context ends; a datagram that the kernel does not take is one that nobody sees.
func send(ctx context.Context, name string, to netip.AddrPort) error {
	address := net.UDPAddrFromAddrPort(to)
	old, err := net.DialUDP("udp", nil, address)
	if err != nil {
		return err
	}
	defer old.Close()
	for number := 0; ctx.Err() == nil; number++ {
		_, _ = fmt.Fprintf(old, "egret-e2e vm/%s old %d", name, number)
		if fresh, err := net.DialUDP("udp", nil, address); err == nil {
			_, _ = fmt.Fprintf(fresh, "egret-e2e vm/%s new %d", name, number)
			fresh.Close()
		}
		time.Sleep(pace)
	}
	return ctx.Err()
}

// flowing waits until each pod's datagrams of both kinds arrive at each address, of those sent from now on.
func (w *watch) flowing() {
	w.l.t.Helper()
	begin := time.Now()
	w.l.eventually("datagrams of all pods", func(context.Context) error {
		count := map[traffic.Flow]int{}
		for _, s := range w.seen.Since(begin) {
			count[s.Flow()]++
		}
		for _, p := range []pod{w.l.far, w.l.near} {
			for _, ip := range w.l.outside {
				for _, kind := range []string{"new", "old"} {
					if f := (traffic.Flow{Pod: "vm/" + p.name, Kind: kind, Dst: ip}); count[f] < 3 {
						return fmt.Errorf("%d datagrams of %+v", count[f], f)
					}
				}
			}
		}
		return nil
	})
}

// close says what was seen with another source than the egress IPs, and what the capture missed.
func (w *watch) close() {
	w.l.t.Helper()
	w.flowing()
	w.stop()
	all := w.seen.Since(time.Time{})
	if wrong := traffic.Wrong(all, "vm/", egressIPs); len(wrong) > 0 {
		w.l.t.Errorf("datagrams with a wrong source: %v; want %v", wrong, egressIPs)
	}
	if err := w.seen.Complete(); err != nil {
		w.l.t.Error(err)
	}
	w.l.t.Logf("%d datagrams seen; %s", len(all), traffic.Lost(all))
}
