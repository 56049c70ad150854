package clearance_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/egret-net/egret/internal/clearance"
	"github.com/egret-net/egret/internal/compile/compiletest"
	"github.com/egret-net/egret/internal/ref"
	"github.com/egret-net/egret/internal/world"
)

// tellNetworks is a story in which namespaces ns1 and ns2 have networks of their own, blue and red, with the same
// subnets on each node. n2 has followed that.
func tellNetworks(t *testing.T) *story {
	s := tell(t, 1)
	s.w.SetNode(inNetworks(1, "blue", "red"))
	for i, name := range []string{"", "blue", "red"} {
		s.w.SetNamespace(&world.Namespace{Name: fmt.Sprint("ns", i), OwnNetwork: i > 0})
		if i > 0 {
			s.number(name, i)
		}
	}
	s.podIn(0, "0")
	s.answerAll()
	return s
}

// number gives a network its number.
func (s *story) number(name string, id int) {
	n := *compiletest.Config(world.SharedGateway).DefaultNetwork()
	n.Name, n.ID, n.Namespaces = name, id, []string{map[string]string{"blue": "ns1", "red": "ns2"}[name]}
	s.w.SetNetwork(&n)
}

// podIn has the pod of namespace ns<i> be in a group, or be gone. All have p0's addresses in their networks.
func (s *story) podIn(i int, group string) {
	p := compiletest.Pod(i, "n1")
	if p.Labels = map[string]string{"a": group}; group == "" {
		s.w.DelPod(p.Key())
	} else {
		if i > 0 {
			p.Further = []world.Interface{{Network: s.w.PrimaryNetwork(p.Namespace), IPs: compiletest.Pod(0, "n1").IPs}}
		}
		s.w.SetPod(p)
	}
	s.step()
}

// answerAll answers all questions, also those that are put a moment later.
func (s *story) answerAll() {
	s.Helper()
	for s.pass(time.Second); len(s.asked) > 0; s.pass(time.Second) {
		q := s.asked[0]
		s.asked = s.asked[1:]
		s.step(clearance.Answer{Question: q})
	}
}

// leadsIn says for which EgressIPs n1 may lead the packets of p0's address in a network to n2.
func (s *story) leadsIn(network int, want string) {
	s.Helper()
	at, have := world.PodAddr{Network: network, IP: compiletest.Pod(0, "n1").IPs[0]}, ""
	for i := range 3 {
		if object := ref.OfKey(fmt.Sprint("e", i)); !s.w.MayTranslate("n2", at, object) {
			have += object.Name
		}
	}
	if have != want {
		s.Errorf("network %d: leads for %q, want %q", network, have, want)
	}
}

// TestSameAddressInTwoNetworks: a claim that ends in one network keeps no pod with the same address in another one from
// a holder, and is not forgotten because of that pod.
func TestSameAddressInTwoNetworks(t *testing.T) {
	s := tellNetworks(t)
	s.podIn(1, "0")
	s.podIn(2, "1")
	s.answerAll()
	for network := range 3 {
		s.leadsIn(network, "e0e1e2")
	}
	s.podIn(1, "2")
	s.leadsIn(0, "e0e1e2")
	s.leadsIn(1, "e0")
	s.leadsIn(2, "e0e1e2")
	s.podIn(1, "")
	s.podIn(2, "")
	s.leadsIn(0, "e0e1e2")
	s.leadsIn(1, "")
	s.leadsIn(2, "e1")
	s.answerAll()
	for network := range 3 {
		s.leadsIn(network, "e0e1e2")
	}
}

// TestNumberOfFormerNetwork: a node that has not followed that a network is gone takes pods of the one that gets its
// number for that network's. They wait for it where that network's pods had another EgressIP.
func TestNumberOfFormerNetwork(t *testing.T) {
	s := tellNetworks(t)
	s.w.DelNetwork("red")
	s.podIn(1, "0")
	s.answerAll()
	s.podIn(1, "")
	s.w.DelNetwork("blue")
	s.number("red", 1)
	s.podIn(2, "2")
	s.leadsIn(1, "e0")
	s.answerAll()
	s.leadsIn(1, "e0e1e2")
}

// TestNetworkComes: addresses of a network that comes to this node may be those of other nodes' former pods there.
// Addresses in other networks do not wait for that.
func TestNetworkComes(t *testing.T) {
	s := tellNetworks(t)
	s.w.SetNode(inNetworks(1, "red"))
	s.step()
	s.w.SetNode(inNetworks(1, "blue", "red"))
	s.quiet = true // no question names what comes now
	s.podIn(1, "0")
	s.podIn(2, "0")
	s.leadsIn(0, "e0e1e2")
	s.leadsIn(1, "")
	s.leadsIn(2, "e0e1e2")
}
