package world_test

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/egret-net/egret/internal/compile/compiletest"
	"github.com/egret-net/egret/internal/ref"
	"github.com/egret-net/egret/internal/world"
)

// said is pod i of n1, which says that it has the address of pod 0.
func said(i int, changes ...func(*world.Pod)) *world.Pod {
	p := compiletest.Pod(i, "n1")
	p.IPs, p.Created = compiletest.PodIPs(0, 1)[:1], time.Unix(int64(1000+i), 0)
	for _, change := range changes {
		change(p)
	}
	return p
}

func confirmed(p *world.Pod)   { p.Confirmed = true }
func terminating(p *world.Pod) { p.Terminating = true }
func completed(p *world.Pod)   { p.Completed = true }
func young(p *world.Pod)       { p.Created = time.Unix(5000, 0) }
func onHost(p *world.Pod)      { p.HostNetwork = true }
func onN2(p *world.Pod)        { p.Node = "n2" }

func seenBy(self string) *world.World {
	w := world.New(self, compiletest.Config(world.SharedGateway))
	for i := 1; i <= 2; i++ {
		w.SetNode(compiletest.Recorded(i))
	}
	return w
}

func addressed(w *world.World, p *world.Pod) bool {
	return len(w.PodIPs(w.Pod(p.Key()), ref.DefaultNetwork)) > 0
}

// TestAddressIsOnePods: of two pods that say they have one address the same one has it on every other node, in whatever
// order they are told of, and the other one has it when that is gone.
func TestAddressIsOnePods(t *testing.T) {
	for name, pods := range map[string][2]*world.Pod{
		"the older":               {said(1), said(2)},
		"the confirmed":           {said(2, confirmed), said(1)},
		"the one that stays":      {said(2), said(1, confirmed, terminating)},
		"both confirmed":          {said(1, confirmed), said(2, confirmed)},
		"both going":              {said(2, confirmed, terminating), said(1, terminating)},
		"created at once, by UID": {said(1, young), said(2, young)},
	} {
		t.Run(name, func(t *testing.T) {
			has, lacks := pods[0], pods[1]
			for _, order := range [][2]*world.Pod{{has, lacks}, {lacks, has}} {
				w := seenBy("n2")
				w.SetPod(order[0])
				w.SetPod(order[1])
				if !addressed(w, has) || addressed(w, lacks) {
					t.Fatalf("has it: %t, want true; has it not: %t", addressed(w, has), !addressed(w, lacks))
				}
				want := []world.TakenAddress{{IP: has.IPs[0], Owner: has.Key()}}
				if have := w.Taken(lacks); !slices.Equal(have, want) {
					t.Errorf("taken: want %v, have %v", want, have)
				}
				gone := *has
				gone.Completed = true
				touched := w.ChangesOf(func() { w.SetPod(&gone) })
				if !slices.Contains(touched, touch(lacks)) || !addressed(w, lacks) {
					t.Error("the other one does not get it when the first has completed, or is not touched")
				}
				touched = w.ChangesOf(func() { w.SetPod(has) })
				if !slices.Contains(touched, touch(lacks)) || addressed(w, lacks) {
					t.Error("the other one keeps it when the first is back, or is not touched")
				}
				touched = w.ChangesOf(func() { w.DelPod(has.Key()) })
				if !slices.Contains(touched, touch(lacks)) || !addressed(w, lacks) {
					t.Error("the other one does not get it when the first is gone, or is not touched")
				}
			}
		})
	}
}

func touch(p *world.Pod) world.Entry { return world.Entry{Kind: world.KindPod, Key: p.Key()} }

// TestNoRival: what a pod says takes nothing from another where it can have no such address.
func TestNoRival(t *testing.T) {
	for name, other := range map[string]*world.Pod{
		"completed": said(1, confirmed, completed), "in the host's network": said(1, confirmed, onHost),
		"of another node": said(1, confirmed, onN2),
	} {
		w, p := seenBy("n2"), said(2)
		w.SetPod(other)
		touched := w.ChangesOf(func() { w.SetPod(p) })
		if !addressed(w, p) || len(w.Taken(p)) > 0 || slices.Contains(touched, touch(other)) {
			t.Errorf("%s: the pod lacks its address, or the other one is touched", name)
		}
	}
}

// TestAttachmentHasTheAddress: on the pod's own node it is the attached pod's, whatever an older one says, until it is
// detached; and it is not that of a new pod with the name of the attached one.
func TestAttachmentHasTheAddress(t *testing.T) {
	w, old, attached := seenBy("n1"), said(1, confirmed), said(2)
	w.SetPod(old)
	w.SetPod(attached)
	at := compiletest.Attachment(attached)
	if addressed(w, attached) || !addressed(w, old) {
		t.Fatal("without an attachment it is not the older pod's")
	}
	touched := w.ChangesOf(func() { w.SetAttachment(at) })
	for _, p := range []*world.Pod{old, attached} {
		if !slices.Contains(touched, touch(p)) {
			t.Errorf("pod %s is not touched", p.Key())
		}
	}
	if !addressed(w, attached) || addressed(w, old) {
		t.Error("it is not the attached pod's")
	}
	next := *attached
	next.UID = "another"
	w.SetPod(&next)
	if addressed(w, &next) || addressed(w, old) {
		t.Error("it is a pod's that is not attached")
	}
	w.SetPod(attached)
	touched = w.ChangesOf(func() { w.DelAttachment(at.Key(), at.HostIface) })
	if !slices.Contains(touched, touch(old)) ||
		!addressed(w, old) || addressed(w, attached) {
		t.Error("it is not the older pod's once the other is detached")
	}
}

// TestUndisputedTouchesNothingMore: who attaches a pod whose address is its own alone touches no pod.
func TestUndisputedTouchesNothingMore(t *testing.T) {
	w, p := seenBy("n1"), said(1)
	w.SetPod(p)
	touched := w.ChangesOf(func() { w.SetAttachment(compiletest.Attachment(p)) })
	if slices.Contains(touched, touch(p)) {
		t.Errorf("its attachment touches %v", touched)
	}
}

// TestAddressesAsFromNothing: over random histories each address is at most one pod's, and the one's that a world has
// which was told everything at once.
func TestAddressesAsFromNothing(t *testing.T) {
	changes := []func(*world.Pod){confirmed, terminating, completed, young, onHost, onN2,
		func(p *world.Pod) { p.IPs = compiletest.PodIPs(1, 1) },
		func(p *world.Pod) { p.IPs = append(slices.Clone(p.IPs), p.IPs...) }}
	for seed := range uint64(100) {
		r := rand.New(rand.NewPCG(seed, 1))
		w := seenBy([]string{"n1", "n2"}[r.IntN(2)])
		for range 60 {
			p := said(r.IntN(5))
			for _, change := range changes {
				if r.IntN(4) == 0 {
					change(p)
				}
			}
			switch r.IntN(6) {
			case 0:
				w.DelPod(p.Key())
			case 1:
				if p.Node == w.Self {
					w.SetAttachment(compiletest.Attachment(p))
				}
			case 2:
				w.DelAttachment(p.Key(), "veth"+p.Name)
			default:
				w.SetPod(p)
			}
			asFromNothing(t, fmt.Sprint("seed ", seed), w)
		}
	}
}

func asFromNothing(t *testing.T, what string, w *world.World) {
	t.Helper()
	fresh, owner := seenBy(w.Self), map[netip.Addr]string{}
	for _, key := range w.Attachments() {
		fresh.SetAttachment(w.Attachment(key))
	}
	keys := w.Pods()
	slices.Sort(keys)
	for _, key := range slices.Backward(keys) {
		fresh.SetPod(w.Pod(key))
	}
	for _, key := range keys {
		p := w.Pod(key)
		have, want := w.PodIPs(p, ref.DefaultNetwork), fresh.PodIPs(p, ref.DefaultNetwork)
		if !slices.Equal(have, want) {
			t.Fatalf("%s: pod %s has %v, from nothing %v", what, key, have, want)
		}
		for _, ip := range have {
			if a := w.Attachment(key); owner[ip] != "" && owner[ip] != key && !p.Completed && a == nil {
				t.Fatalf("%s: %s is both %s's and %s's", what, ip, owner[ip], key)
			}
			if !p.Completed {
				owner[ip] = key
			}
		}
	}
}
