package e2e

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/egret-net/egret/test/oracle"
	"github.com/egret-net/egret/test/traffic"
)

// capture sees every datagram that senders' pods get out to hosts outside.
type capture struct {
	*traffic.Capture
	t *testing.T
}

// capture listens where all packets of the primary and the secondary network pass, from now until the test ends.
func (c *cluster) capture(t *testing.T) *capture {
	t.Helper()
	for _, h := range c.hosts {
		stop, err := traffic.Swallow(h.Name)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(stop)
	}
	s, err := traffic.Listen(c.Cluster)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return &capture{s, t}
}

// onlyFrom says that nothing was seen of a namespace's pods with another source than these, and that nothing was
// missed.
func (s *capture) onlyFrom(n *namespace, want []netip.Addr) {
	s.t.Helper()
	all := s.Since(time.Time{})
	if wrong := traffic.Wrong(all, n.name+"/", want); len(wrong) > 0 {
		s.t.Errorf("datagrams with a wrong source: %v; want %v", wrong, want)
	}
	if !slices.ContainsFunc(all, func(x traffic.Sighting) bool { return strings.HasPrefix(x.Pod, n.name+"/") }) {
		s.t.Error("the capture saw no datagram of " + n.name + " at all")
	}
	if err := s.Complete(); err != nil {
		s.t.Error(err)
	}
}

// eachItsOwn says that each datagram of a namespace's pods had a source that was that very pod's, by the objects with a
// claim to it when it was seen, and that nothing was missed.
func (s *capture) eachItsOwn(n *namespace) {
	s.t.Helper()
	all := s.Since(time.Time{})
	if wrong := s.misjudged(n.name+"/", time.Time{}); len(wrong) > 0 {
		s.t.Errorf("datagrams with another source than their pod's: %q", wrong)
	}
	if !slices.ContainsFunc(all, func(x traffic.Sighting) bool { return strings.HasPrefix(x.Pod, n.name+"/") }) {
		s.t.Error("the capture saw no datagram of " + n.name + " at all")
	}
	if err := s.Complete(); err != nil {
		s.t.Error(err)
	}
}

// misjudged are the datagrams after a time, of pods whose name begins so, that the oracle calls wrong, in sentences.
func (s *capture) misjudged(pods string, begin time.Time) []string {
	count := map[string]int{}
	for _, x := range s.Since(begin) {
		if !strings.HasPrefix(x.Pod, pods) {
			continue
		}
		if right := running.right.Judge(oracle.Packet{At: x.At, Pod: x.Pod, Src: x.Src, Dst: x.Dst}); right != "" {
			count[fmt.Sprintf("%s to %s as %s, right was %s", x.Pod, x.Dst, x.Src, right)]++
		}
	}
	var out []string
	for text, n := range count {
		out = append(out, fmt.Sprintf("%d of %s", n, text))
	}
	slices.Sort(out)
	return out
}

// lost says what is missing after a time.
func (s *capture) lost(begin time.Time) traffic.Loss { return traffic.Lost(s.Since(begin)) }

// flowing waits until every one of these pods of a namespace was seen at every address outside, after a time.
func (s *capture) flowing(c *cluster, n *namespace, pods []string, after time.Time, limit time.Duration) {
	s.t.Helper()
	within(s.t, limit, func() error {
		seen := map[traffic.Flow]int{}
		for _, x := range s.Since(after) {
			seen[x.Flow()]++
		}
		for _, p := range pods {
			for _, h := range c.hosts {
				for _, ip := range h.IPs {
					if f := (traffic.Flow{Pod: n.name + "/" + p, Kind: "new", Dst: ip}); seen[f] < 5 {
						return fmt.Errorf("%d datagrams of pod %s to %s", seen[f], f.Pod, f.Dst)
					}
				}
			}
		}
		return nil
	})
}
