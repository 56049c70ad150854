package traffic

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/egret-net/egret/internal/sandbox"
	"github.com/egret-net/egret/test/harness"
	"github.com/egret-net/egret/test/traffic/echo"
)

const (
	// EchoPort is where echo servers listen.
	EchoPort = 9998
	// apart is the distance of new connections' starts.
	apart = 10 * time.Millisecond
	// Patience is how long a new connection may take, below TCP's first retransmission after 1 s: each tries the path
	// once.
	Patience = 300 * time.Millisecond
	// Heartbeat is how long an echo over a held connection may take; one that takes longer is broken.
	Heartbeat = 5 * time.Second
)

// Attempt is a new connection.
type Attempt struct {
	Start, End time.Time
	// Source is the address in the answer: the client's, as a host outside sees it, or that of the pod that answers it.
	// Not valid if it failed.
	Source netip.Addr
}

// Connections are those of a pod to an echo server outside, or of a host outside to one in a pod, as the sender reports
// them.
type Connections struct {
	*harness.Job
	mu       sync.Mutex
	attempts []Attempt // in the order of their ends
	held     map[int]netip.Addr
	broken   map[int]time.Time
}

// ServeEcho answers connections at an external host until close.
func ServeEcho(host string) (close func(), err error) {
	var l net.Listener
	err = sandbox.InNetns(host, func() (err error) {
		l, err = net.Listen("tcp", net.JoinHostPort("", strconv.Itoa(EchoPort)))
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("serve at %s: %w", host, err)
	}
	go echo.Serve(l, net.Conn.RemoteAddr)
	return func() { _ = l.Close() }, nil
}

// Connect has a pod make connections to an external host, and hold some, until stop.
func Connect(ctx context.Context, c *harness.Cluster, p *corev1.Pod, to netip.Addr, held int) (*Connections, error) {
	j, err := c.InPod(ctx, p, append([]string{Sender}, connectTo(to, held)...)...)
	if err != nil {
		return nil, err
	}
	return follow(j), nil
}

// ConnectFrom has an external host make connections to a Service's address, until stop. Servers in pods answer, see
// ServeInPod.
func ConnectFrom(c *harness.Cluster, host string, to netip.Addr) (*Connections, error) {
	j, err := c.Start(host, append([]string{onMachine(c.Cluster)}, connectTo(to, 0)...)...)
	if err != nil {
		return nil, err
	}
	return follow(j), nil
}

// ServeInPod has a pod answer connections with its own address until the job is stopped.
func ServeInPod(ctx context.Context, c *harness.Cluster, p *corev1.Pod) (*harness.Job, error) {
	return c.InPod(ctx, p, Sender, "serve", strconv.Itoa(EchoPort))
}

func connectTo(to netip.Addr, held int) []string {
	return []string{"connect", strconv.Itoa(held), netip.AddrPortFrom(to, EchoPort).String()}
}

func follow(j *harness.Job) *Connections {
	t := &Connections{Job: j, held: map[int]netip.Addr{}, broken: map[int]time.Time{}}
	go t.read(j.Stdout)
	return t
}

func (t *Connections) read(r io.Reader) {
	for lines := bufio.NewScanner(r); lines.Scan(); {
		t.mu.Lock()
		t.note(strings.Fields(lines.Text()))
		t.mu.Unlock()
	}
}

// note takes a line of connect in.
func (t *Connections) note(words []string) {
	if len(words) < 3 {
		return
	}
	second, _ := strconv.ParseInt(words[2], 10, 64)
	switch first, _ := strconv.ParseInt(words[1], 10, 64); words[0] {
	case "held":
		t.held[int(first)], _ = netip.ParseAddr(words[3])
	case "broken":
		t.broken[int(first)] = time.Unix(0, second)
	case "new":
		a := Attempt{Start: time.Unix(0, first), End: time.Unix(0, second)}
		if source, err := netip.ParseAddr(words[3]); err == nil {
			a.Source = source.Unmap()
		}
		t.attempts = append(t.attempts, a)
	}
}

// Since are the attempts that started after a time, in the order of their starts.
func (t *Connections) Since(begin time.Time) []Attempt {
	t.mu.Lock()
	defer t.mu.Unlock()
	var out []Attempt
	for _, a := range t.attempts {
		if a.Start.After(begin) {
			out = append(out, a)
		}
	}
	slices.SortFunc(out, func(a, b Attempt) int { return a.Start.Compare(b.Start) })
	return out
}

// Failed counts those without an answer.
func Failed(all []Attempt) int {
	n := 0
	for _, a := range all {
		if !a.Source.IsValid() {
			n++
		}
	}
	return n
}

// FirstAgain is when the first connection had its answer that started after one that failed; ok is false while there is
// none.
func FirstAgain(all []Attempt) (at time.Time, ok bool) {
	lost := false
	for _, a := range all {
		if !a.Source.IsValid() {
			lost = true
		} else if lost && (!ok || a.End.Before(at)) {
			at, ok = a.End, true
		}
	}
	return at, ok
}

// NoneFails is the start of the first connection after the last that failed; the given time if none failed.
func NoneFails(all []Attempt, begin time.Time) time.Time {
	for i := len(all) - 1; i >= 0; i-- {
		if !all[i].Source.IsValid() {
			if i+1 == len(all) {
				return all[i].End
			}
			return all[i+1].Start
		}
	}
	return begin
}

// Steady waits until no new connection has failed for a while after a time, and every one of these sources was seen
// meanwhile, and no other.
func (t *Connections) Steady(ctx context.Context, after time.Time, sources ...netip.Addr) error {
	const while = 2 * time.Second
	if err := harness.SleepUntil(ctx, after.Add(while+Patience)); err != nil {
		return err
	}
	return harness.Until(ctx, time.Minute, 50*time.Millisecond, func() error {
		recent := t.Since(time.Now().Add(-while - Patience)) // the last ones have no answer yet
		seen := map[netip.Addr]int{}
		for _, a := range recent {
			seen[a.Source]++
		}
		for _, s := range sources {
			if seen[s] == 0 {
				return fmt.Errorf("of the last %d connections none had source %s", len(recent), s)
			}
		}
		if len(seen) != len(sources) || len(recent) < int(while/apart)/2 {
			return fmt.Errorf("%d connections in %s, by source (invalid are those that failed): %v; want %v alone",
				len(recent), while, seen, sources)
		}
		return nil
	})
}

// Holds waits until so many held connections are there, and returns their numbers by source.
func (t *Connections) Holds(ctx context.Context, want int) (map[netip.Addr][]int, error) {
	out := map[netip.Addr][]int{}
	return out, harness.Until(ctx, 20*time.Second, 50*time.Millisecond, func() error {
		t.mu.Lock()
		defer t.mu.Unlock()
		if len(t.held) < want {
			return fmt.Errorf("%d of %d held connections could be made", len(t.held), want)
		}
		clear(out)
		for number, source := range t.held {
			out[source] = append(out[source], number)
		}
		return nil
	})
}

// BrokenOf counts those of some held connections that have broken after a time.
func (t *Connections) BrokenOf(numbers []int, after time.Time) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := 0
	for _, number := range numbers {
		if at, ok := t.broken[number]; ok && at.After(after) {
			n++
		}
	}
	return n
}
