package clearance_test

import (
	"testing"
	"time"

	"github.com/egret-net/egret/internal/clearance"
	"github.com/egret-net/egret/internal/compile/compiletest"
	"github.com/egret-net/egret/internal/ref"
	"github.com/egret-net/egret/internal/world"
)

// mayDrop says whether n2 may not know of p0's claim in a network yet, by an EgressIP.
func (s *story) mayDrop(network int, egressIP string, want bool) {
	s.Helper()
	at := world.PodAddr{Network: network, IP: compiletest.Pod(0, "n1").IPs[0]}
	if have := s.w.MayDrop("n2", at, ref.OfKey(egressIP)); have != want {
		s.Errorf("network %d, %s: may drop: %t", network, egressIP, have)
	}
}

// TestAddressSaidLater: a node that was asked before the API had the pod's address does not know of the pod. It is
// asked again, and is late if it hangs by then.
func TestAddressSaidLater(t *testing.T) {
	s, p := tell(t, 1), compiletest.Pod(0, "n1")
	s.group("0")
	s.answer(nil)
	s.group("")
	s.pass(time.Second)
	s.answer(nil)
	s.w.SetAttachment(compiletest.Attachment(p))
	p.Labels, p.IPs = map[string]string{"a": "0"}, nil
	s.w.SetPod(p)
	s.step()
	s.pass(time.Second)
	s.answerAll()
	s.leads("e0e1e2")
	s.mayDrop(0, "e0", true)
	if s.pass(time.Second); len(s.asked) > 0 {
		t.Errorf("asks %v though no answer can tell", s.asked)
	}
	s.group("0") // with its address
	s.mayDrop(0, "e0", true)
	s.pass(2 * time.Second)
	if !s.w.LateToFollow("n2") {
		t.Error("n2 is not late")
	}
	s.answer(nil)
	s.pass(time.Minute)
	s.answerAll()
	s.mayDrop(0, "e0", false)
}

// TestPartComesLater: a node that answered before it had its part of a network serves no pods of that network yet.
func TestPartComesLater(t *testing.T) {
	s := tellNetworks(t)
	s.podIn(1, "0")
	s.answerAll()
	s.mayDrop(1, "e0", false)
	s.w.SetNode(inNetworks(2, "blue"))
	s.step()
	s.mayDrop(1, "e0", true)
	s.mayDrop(0, "e0", false)
	s.answerAll()
	s.mayDrop(1, "e0", false)
	s.w.SetNode(inNetworks(2, "blue", "red"))
	s.step()
	s.mayDrop(1, "e0", false)
}

// TestMarkComesLater: a node that answered before an EgressIP had its mark translates none of its packets of networks
// of users yet. Those of the default network need no mark.
func TestMarkComesLater(t *testing.T) {
	s := tellNetworks(t)
	s.w.SetNode(inNetworks(2, "blue"))
	s.podIn(1, "0")
	s.answerAll()
	s.mayDrop(1, "e0", false)
	e := *s.w.EgressIP("e0")
	e.Mark = 50007
	s.w.SetEgressIP(&e)
	s.step()
	s.mayDrop(1, "e0", true)
	s.mayDrop(0, "e0", false)
	s.answerAll()
	s.mayDrop(1, "e0", false)
}

// TestPartsOfAFirstQuestion: a node that is asked for the first time when it has its part is asked once.
func TestPartsOfAFirstQuestion(t *testing.T) {
	s := tellNetworks(t)
	s.machine = clearance.Machine{}
	s.w.SetNode(inNetworks(2, "blue"))
	s.machine.Begin(s.w, clearance.Former{})
	s.podIn(0, "")
	s.podIn(1, "0")
	s.answer(nil)
	s.mayDrop(1, "e0", false)
	if s.pass(time.Minute); len(s.asked) > 0 {
		t.Errorf("asks %v again", s.asked)
	}
}

// TestRivalMoves: two pods have an address, and the EgressIP of one moves to another node. The one that had it may
// translate by it on, for it may not have heard of that: it gets no packets from the address for another EgressIP.
func TestRivalMoves(t *testing.T) {
	s := tell(t, 1)
	s.says("n3", 1)
	s.group("0")
	other := s.sharer()
	s.answerAll()
	s.leads("")
	placed(s.w.EgressIP("e0"), "n3")(s.w)
	s.step()
	s.answerAll()
	s.leads("")
	s.leave(other)
	s.leads("e0e1e2")
}

// sharer is a pod of group 2 with p0's addresses.
func (s *story) sharer() *world.Pod {
	other := *compiletest.Pod(3, "n1")
	other.IPs, other.Labels = compiletest.Pod(0, "n1").IPs, map[string]string{"a": "2"}
	s.w.SetAttachment(compiletest.Attachment(&other))
	s.w.SetPod(&other)
	s.step()
	return &other
}

func (s *story) leave(p *world.Pod) {
	s.w.DelPod(p.Key())
	s.w.DelAttachment(p.Key(), compiletest.Attachment(p).HostIface)
	s.step()
	s.answerAll()
}

// TestTwoPodsOfOneAddress: that lasts as long as there are two, and the world knows which addresses are concerned.
func TestTwoPodsOfOneAddress(t *testing.T) {
	s, at := tell(t, 1), world.PodAddr{IP: compiletest.Pod(0, "n1").IPs[0]}
	s.group("0")
	s.answerAll()
	if s.w.IsShared(at) {
		t.Error("one pod has the address")
	}
	other := s.sharer()
	s.answerAll()
	if !s.w.IsShared(at) {
		t.Error("two pods have the address")
	}
	s.leave(other)
	if s.w.IsShared(at) {
		t.Error("one pod has the address again")
	}
	s.leads("e0e1e2")
}
