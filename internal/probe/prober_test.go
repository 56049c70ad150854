package probe_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"

	"github.com/egret-net/egret/internal/probe"
	"github.com/egret-net/egret/internal/world"
)

// lab is nodes on loopback, 127.0.0.N each, and a Prober with what it told.
type lab struct {
	*testing.T
	port int
	*probe.Prober
	mu   sync.Mutex
	told []string
	why  map[string]world.Unreachability
	rtts atomic.Int64
}

func newLab(t *testing.T) *lab {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return &lab{T: t, port: l.Addr().(*net.TCPAddr).Port, why: map[string]world.Unreachability{}}
}

// probe probes some of the nodes; with no health service, it knocks at the lab's port in place of 9.
func (l *lab) probe(o probe.Options, nodes ...int) {
	o.Total = time.Second
	o.Log = slog.New(slog.NewTextHandler(io.Discard, nil))
	o.RTT = func(time.Duration) { l.rtts.Add(1) }
	o.Tell = func(_ context.Context, c probe.Change) {
		l.mu.Lock()
		defer l.mu.Unlock()
		if c.Why != l.why[c.Node] { // of nodes that are not answering the Judge's tests tell
			l.told, l.why[c.Node] = append(l.told, fmt.Sprintf("%s %s", c.Node, c.Why)), c.Why
		}
	}
	l.Prober = probe.New(o)
	l.Door(l.port)
	var targets []probe.Target
	for _, n := range nodes {
		targets = append(targets,
			probe.Target{Node: fmt.Sprint("n", n), Addrs: []netip.Addr{netip.AddrFrom4([4]byte{127, 0, 0, byte(n)})}})
	}
	l.Follow(targets, probe.Witnesses{})
	go l.Prober.Run(l.Context()) // fails without file descriptors only
}

// last is what was told of a node last: "-" if nothing was.
func (l *lab) last(node string) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := len(l.told) - 1; i >= 0; i-- {
		var name, why string
		if fmt.Sscan(l.told[i], &name, &why); name == node {
			return why
		}
	}
	return "-"
}

func (l *lab) soon(node, why string) {
	l.Helper()
	deadline := time.Now().Add(20 * time.Second)
	for l.last(node) != why {
		if time.Now().After(deadline) {
			l.Fatalf("of %s: have %q, want %q; all: %v", node, l.last(node), why, l.told)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// quiet fails if anything is told in a time.
func (l *lab) quiet(d time.Duration) {
	l.Helper()
	l.mu.Lock()
	before := len(l.told)
	l.mu.Unlock()
	time.Sleep(d)
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.told) > before {
		l.Fatalf("told %v", l.told[before:])
	}
}

func (l *lab) listen(node int) net.Listener {
	l.Helper()
	s, err := net.Listen("tcp", fmt.Sprintf("127.0.0.%d:%d", node, l.port))
	if err != nil {
		l.Fatal(err)
	}
	return s
}

// agent runs a health service on a node until stop.
func (l *lab) agent(node int, tls probe.Files) (stop func()) {
	l.Helper()
	s := l.listen(node)
	ctx, cancel := context.WithCancel(l.Context())
	var done sync.WaitGroup
	done.Go(func() { probe.Serve(ctx, s, tls, slog.New(slog.DiscardHandler)) })
	stop = func() { cancel(); done.Wait() }
	l.Cleanup(stop)
	return stop
}

// mute makes a node's kernel drop what would open a connection: nobody takes those that are open, and there is room for
// no more.
func (l *lab) mute(node int) (restore func()) {
	l.Helper()
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		l.Fatal(err)
	}
	unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1)
	to := &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, byte(node)}, Port: l.port}
	if err := unix.Bind(fd, to); err != nil {
		l.Fatal(err)
	}
	if err := unix.Listen(fd, 0); err != nil {
		l.Fatal(err)
	}
	var open []net.Conn
	for range 4 {
		if c, err := net.DialTimeout("tcp", fmt.Sprintf("127.0.0.%d:%d", node, l.port),
			100*time.Millisecond); err == nil {
			open = append(open, c)
		}
	}
	return func() {
		unix.Close(fd)
		for _, c := range open {
			c.Close()
		}
	}
}

// TestPortNine: refused and accepted are alive, silence is not.
func TestPortNine(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	restore := l.mute(12)
	l.listen(13)
	l.probe(probe.Options{Self: "n9", Grace: time.Minute}, 11, 12, 13)
	l.soon("n12", "NodeUnreachable")
	if !l.Silent("n12") || l.Silent("n11") || l.CutOff() {
		t.Errorf("n12 silent %v, n11 silent %v, cut off %v", l.Silent("n12"), l.Silent("n11"), l.CutOff())
	}
	restore()
	l.soon("n12", "")
	if a, b := l.last("n11"), l.last("n13"); a+b != "--" {
		t.Errorf("told %v", l.told)
	}
	if l.rtts.Load() == 0 {
		t.Error("no time of an answer")
	}
}

// TestToldAnew: of a node that is named with other addresses, or anew, the Prober tells, whatever it does and whether
// or not it has taken what was named in between; and it is asked at the addresses that are named last.
func TestToldAnew(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	restore := l.mute(73)
	told, held := make(chan probe.Change), false
	p := probe.New(probe.Options{Self: "n9", Total: time.Second, Grace: time.Minute,
		Log: slog.New(slog.DiscardHandler), RTT: func(time.Duration) {},
		Tell: func(ctx context.Context, c probe.Change) {
			if c.Node != "x" {
				return
			}
			for range 2 { // what is followed between the two is not taken until the second
				select {
				case told <- c:
				case <-ctx.Done():
				}
			}
		}})
	p.Door(l.port)
	at := func(n byte) []netip.Addr { return []netip.Addr{netip.AddrFrom4([4]byte{127, 0, 0, n})} }
	x, rest := probe.Target{Node: "x", Addrs: at(71)}, probe.Target{Node: "n2", Addrs: at(72)}
	follow := func(all ...probe.Target) { p.Follow(all, probe.Witnesses{}) }
	until := func(what string, answers bool) {
		t.Helper()
		for {
			if held {
				<-told
			}
			select {
			case c := <-told:
				if held = true; c.Why == "" && c.NotAnswering != answers {
					return
				}
			case <-time.After(20 * time.Second):
				t.Fatalf("%s: not told that it answers: %v", what, answers)
			}
		}
	}
	follow(x, rest)
	go p.Run(t.Context())
	until("the first time", true)
	for i := range byte(10) {
		x.Direct = at(100 + i)
		follow(x, rest)
		until("another direct address", true)
		follow(rest)
		follow(x, rest)
		follow(x, rest)
		until("away and back", true)
	}
	x.Addrs = at(73)
	follow(x, rest)
	until("a silent address", false)
	follow(rest, probe.Target{Node: "x", Addrs: at(71)})
	follow(x, rest)
	until("an answering one, which was never taken", false)
	restore()
	until("it answers", true)
}

// TestRestart: an agent's restart is not told of; a long absence is, and its end.
func TestRestart(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	stop := l.agent(21, probe.Files{})
	l.agent(22, probe.Files{})
	l.probe(probe.Options{Self: "n9", Port: l.port, Grace: 6 * time.Second}, 21, 22)
	l.quiet(2 * time.Second)
	stop()
	l.quiet(2 * time.Second)
	stop = l.agent(21, probe.Files{})
	l.quiet(6 * time.Second)
	stop()
	l.soon("n21", "AgentAway")
	l.agent(21, probe.Files{})
	l.soon("n21", "")
	if l.last("n22") != "-" {
		t.Errorf("told %v", l.told)
	}
}

// TestFrozenAgent: the kernel takes connections for an agent that hangs; its host is alive.
func TestFrozenAgent(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.listen(31)
	l.agent(32, probe.Files{})
	l.probe(probe.Options{Self: "n9", Port: l.port, Grace: 3 * time.Second}, 31, 32)
	l.soon("n31", "AgentAway")
	if len(l.told) > 1 {
		t.Errorf("told %v", l.told)
	}
}

// TestPlainServer: a health service without beats, or without Watch, is asked instead.
func TestPlainServer(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	plain := health.NewServer()
	plain.SetServingStatus(probe.Service, grpc_health_v1.HealthCheckResponse_SERVING)
	for node, service := range map[int]grpc_health_v1.HealthServer{41: plain, 42: checkOnly{plain}} {
		s := grpc.NewServer()
		grpc_health_v1.RegisterHealthServer(s, service)
		go s.Serve(l.listen(node))
		t.Cleanup(s.Stop)
	}
	l.agent(43, probe.Files{})
	l.probe(probe.Options{Self: "n9", Port: l.port, Grace: 3 * time.Second}, 41, 42, 43)
	l.quiet(6 * time.Second)
	plain.SetServingStatus(probe.Service, grpc_health_v1.HealthCheckResponse_NOT_SERVING)
	l.soon("n41", "AgentAway")
	l.soon("n42", "AgentAway")
}

// checkOnly has no Watch.
type checkOnly struct{ *health.Server }

func (checkOnly) Watch(r *grpc_health_v1.HealthCheckRequest,
	s grpc.ServerStreamingServer[grpc_health_v1.HealthCheckResponse]) error {
	return grpc_health_v1.UnimplementedHealthServer{}.Watch(r, s)
}

// TestPowerOff: a session that goes silent without an end, and no answer to a new connection.
func TestPowerOff(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	cable := &cable{Listener: l.listen(51), cut: make(chan struct{})}
	ctx, stop := context.WithCancel(t.Context())
	t.Cleanup(stop)
	go probe.Serve(ctx, cable, probe.Files{}, slog.New(slog.DiscardHandler))
	l.agent(52, probe.Files{})
	l.probe(probe.Options{Self: "n9", Port: l.port, Grace: time.Minute}, 51, 52)
	l.quiet(3 * time.Second)
	close(cable.cut)
	cable.Listener.Close()
	restore := l.mute(51)
	l.soon("n51", string(world.NodeUnreachable))
	restore()
	l.soon("n51", "AgentAway") // the host is back
	l.agent(51, probe.Files{})
	l.soon("n51", "")
}

// cable is a listener whose connections lose what is sent once it is cut.
type cable struct {
	net.Listener
	cut chan struct{}
}

func (c *cable) Accept() (net.Conn, error) {
	conn, err := c.Listener.Accept()
	return plugged{conn, c.cut}, err
}

type plugged struct {
	net.Conn
	cut chan struct{}
}

func (p plugged) Write(b []byte) (int, error) {
	select {
	case <-p.cut:
		return len(b), nil
	default:
		return p.Conn.Write(b)
	}
}

func (p plugged) Close() error {
	select {
	case <-p.cut:
		return nil
	default:
		return p.Conn.Close()
	}
}

// TestStandardWatch: who does not ask for beats gets none.
func TestStandardWatch(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.agent(61, probe.Files{})
	cc := dialed(t, fmt.Sprintf("127.0.0.61:%d", l.port))
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	client := grpc_health_v1.NewHealthClient(cc)
	stream, err := client.Watch(ctx, &grpc_health_v1.HealthCheckRequest{})
	if err != nil {
		t.Fatal(err)
	}
	if r, err := stream.Recv(); err != nil || r.Status != grpc_health_v1.HealthCheckResponse_SERVING {
		t.Errorf("have %v, %v", r, err)
	}
	if r, err := stream.Recv(); err == nil {
		t.Errorf("another answer: %v", r)
	}
	if r, err := client.Check(t.Context(), &grpc_health_v1.HealthCheckRequest{Service: "web"}); err == nil {
		t.Errorf("an unknown service: %v", r)
	}
}
