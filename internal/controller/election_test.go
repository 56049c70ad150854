package controller

import (
	"context"
	"errors"
	"net/netip"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
)

// nodesSeen are what a test says of nodes, and who leads.
type nodesSeen struct {
	heardAt netip.Addr
	mu      sync.Mutex
	silent  string
	cutOff  bool
	changed chan struct{}
	terms   chan context.Context
	leaders chan string
}

func newNodesSeen() *nodesSeen {
	return &nodesSeen{changed: make(chan struct{}, 1), terms: make(chan context.Context, 10), leaders: make(chan string,
		10)}
}

func (n *nodesSeen) set(silent string, cutOff bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.silent, n.cutOff = silent, cutOff
	n.changed <- struct{}{}
}

func (n *nodesSeen) Silent(node string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.silent == node
}
func (n *nodesSeen) CutOff() bool             { n.mu.Lock(); defer n.mu.Unlock(); return n.cutOff }
func (n *nodesSeen) Changed() <-chan struct{} { return n.changed }
func (n *nodesSeen) Heard(own, _ netip.Addr)  { n.mu.Lock(); defer n.mu.Unlock(); n.heardAt = own }
func (n *nodesSeen) Lead(ctx context.Context) { n.terms <- ctx; <-ctx.Done() }
func (n *nodesSeen) Led(_ context.Context, node string) {
	n.leaders <- node
}

// heldBy is an API server where a node has the lease for an hour. It refuses an update of what was written, or deleted
// and made again, since it was read.
func heldBy(node string) *fake.Clientset {
	now, seconds := metav1.NewMicroTime(time.Now()), int32(3600)
	api := fake.NewClientset(&coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: leaseSpace, Name: leaseName, ResourceVersion: "0"},
		Spec: coordinationv1.LeaseSpec{HolderIdentity: &node, LeaseDurationSeconds: &seconds, AcquireTime: &now,
			RenewTime: &now},
	})
	version := 0
	api.PrependReactor("*", "leases", func(a clienttesting.Action) (bool, runtime.Object, error) {
		write, is := a.(clienttesting.CreateAction) // or an update, which has an object, too
		if !is {
			return false, nil, nil
		}
		l := write.GetObject().(*coordinationv1.Lease)
		if a.GetVerb() == "update" && l.ResourceVersion != strconv.Itoa(version) {
			return true, nil, apierrors.NewConflict(coordinationv1.Resource("leases"), l.Name,
				errors.New("it was written meanwhile"))
		}
		version++
		l.ResourceVersion = strconv.Itoa(version)
		return false, nil, nil
	})
	return api
}

func stands(t *testing.T, api *fake.Clientset, identity string) *nodesSeen {
	seen := newNodesSeen()
	seen.stand(t, api, identity)
	return seen
}

// stand has a candidate stand, with what is known of nodes by then.
func (seen *nodesSeen) stand(t *testing.T, api *fake.Clientset, identity string) {
	e := newElection(api.CoordinationV1(), identity, seen, seen, &ends{})
	var done sync.WaitGroup
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(func() { cancel(); done.Wait() })
	done.Go(func() {
		for ctx.Err() == nil {
			if err := e.standForElection(ctx); err != nil {
				t.Error(err)
				return
			}
		}
	})
}

func within[T any](t *testing.T, what string, c <-chan T) T {
	t.Helper()
	select {
	case x := <-c:
		return x
	case <-time.After(20 * time.Second):
		t.Fatal(what)
		panic("unreachable")
	}
}

func holder(t *testing.T, api *fake.Clientset) string {
	t.Helper()
	l, err := api.CoordinationV1().Leases(leaseSpace).Get(t.Context(), leaseName, metav1.GetOptions{})
	if err != nil || l.Spec.HolderIdentity == nil {
		t.Fatalf("lease: %v, %v", l, err)
	}
	return *l.Spec.HolderIdentity
}

// TestTheLeaseOfADeadNodeIsTaken: long before it ends; not from a node that lives.
func TestTheLeaseOfADeadNodeIsTaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := heldBy("n1")
		b := stands(t, api, "n2")
		if leader := within(t, "told who leads", b.leaders); leader != "n1" {
			t.Errorf("told that %q leads", leader)
		}
		b.set("n3", false)
		select {
		case <-b.terms:
			t.Fatal("leads in place of a leader whose node lives")
		case <-time.After(2 * time.Second):
		}
		b.set("n1", false)
		within(t, "takes the lease of a dead node", b.terms)
		if h := holder(t, api); h != "n2" {
			t.Errorf("held by %q", h)
		}
	})
}

// TestTakenLeaseEndsTheTerm: the one that it was taken from stops as soon as it sees that.
func TestTakenLeaseEndsTheTerm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := heldBy("nobody")
		a := stands(t, api, "n1")
		a.set("nobody", false)
		term := within(t, "n1 leads", a.terms)
		b := stands(t, api, "n2")
		b.set("n1", false)
		within(t, "n2 leads", b.terms)
		within(t, "n1 leads no more", term.Done())
	})
}

// TestTwoThatDoNotHearEachOther: each holds the other's node for dead. The lease moves once, the one that lost it ends
// its term and leaves the lease there; from a dead node it takes it again once it has heard that one.
func TestTwoThatDoNotHearEachOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := heldBy("nobody")
		a := stands(t, api, "n1")
		a.set("nobody", false)
		first := within(t, "n1 leads", a.terms)
		b := stands(t, api, "n2")
		a.set("n2", false)
		b.set("n1", false)
		second := within(t, "n2 leads", b.terms)
		began := time.Now()
		within(t, "n1 leads no more", first.Done())
		if after := time.Since(began); after > 2*retryPeriod {
			t.Errorf("two led for %s", after)
		}
		select {
		case <-a.terms:
			t.Fatal("n1 took the lease back")
		case <-second.Done():
			t.Fatal("n2 leads no more")
		case <-time.After(time.Minute):
		}
		if h := holder(t, api); h != "n2" {
			t.Errorf("held by %q", h)
		}
		a.set("", false)
		time.Sleep(2 * time.Second)
		a.set("n2", false)
		within(t, "n1 takes the lease of a node that it has heard meanwhile", a.terms)
	})
}

// TestLeaseOfTheTakerEnds: who lost the lease to a node that it still does not hear leads again when that one does not
// renew it, with nobody else there.
func TestLeaseOfTheTakerEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var off atomic.Bool
		api := heldBy("nobody")
		api.PrependReactor("update", "leases", func(x clienttesting.Action) (bool, runtime.Object, error) {
			l := x.(clienttesting.UpdateAction).GetObject().(*coordinationv1.Lease)
			if off.Load() && *l.Spec.HolderIdentity != "n1" {
				return true, nil, errors.New("n2 has no power")
			}
			return false, nil, nil
		})
		a := stands(t, api, "n1")
		a.set("nobody", false)
		within(t, "n1 leads", a.terms)
		b := stands(t, api, "n2")
		a.set("n2", false)
		b.set("n1", false)
		within(t, "n2 leads", b.terms)
		time.Sleep(time.Second)
		off.Store(true)
		within(t, "n1 leads again", a.terms)
	})
}

// TestLostLeaseIsNotReleased: a leader that is to stop just when another has taken the lease leaves that to it.
func TestLostLeaseIsNotReleased(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := heldBy("nobody")
		a := stands(t, api, "n1")
		a.set("nobody", false)
		term := within(t, "n1 leads", a.terms)
		synctest.Wait() // until it has written all that it writes now
		l, err := api.CoordinationV1().Leases(leaseSpace).Get(t.Context(), leaseName, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		taker := "n2"
		l.Spec.HolderIdentity = &taker
		_, err = api.CoordinationV1().Leases(leaseSpace).Update(t.Context(), l, metav1.UpdateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		a.set("", true)
		within(t, "n1 leads no more", term.Done())
		time.Sleep(retryPeriod / 2)
		if h := holder(t, api); h != "n2" {
			t.Errorf("held by %q", h)
		}
	})
}

// TestCutOffLeaderYields: another gets the lease at once.
func TestCutOffLeaderYields(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := heldBy("nobody")
		a := stands(t, api, "n1")
		a.set("nobody", false)
		term := within(t, "n1 leads", a.terms)
		b := stands(t, api, "n2")
		a.set("", true)
		within(t, "n1 leads no more", term.Done())
		within(t, "n2 leads", b.terms)
	})
}

// TestCutOffTakesNothing: from a leader that renews its lease, however dead its node was; one that is free it leaves to
// others first, and takes it in the end if there are none.
func TestCutOffTakesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := heldBy("nobody")
		a := stands(t, api, "n1")
		a.set("nobody", false)
		term := within(t, "n1 leads", a.terms)
		b := stands(t, api, "n2")
		b.set("n1", true)
		select {
		case <-b.terms:
			t.Fatal("leads in place of a leader that it cannot tell about")
		case <-term.Done():
			t.Fatal("lost the lease to one that no node answers")
		case <-time.After(time.Minute):
		}
		a.set("", true) // no node answers either of them: somebody has to lead
		within(t, "n1 gives the lease up", term.Done())
		began := time.Now()
		select {
		case <-a.terms:
		case <-b.terms:
		case <-time.After(time.Minute):
			t.Fatal("nobody leads")
		}
		if after := time.Since(began); after > 3*leaseDuration {
			t.Errorf("nobody led for %s", after)
		}
	})
}

// TestFreeLeaseIsLeftToThoseWithAnswers: of two who want a lease that nobody has, the one that is cut off comes last,
// though it asked first.
func TestFreeLeaseIsLeftToThoseWithAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api, a := heldBy(""), newNodesSeen()
		a.cutOff = true
		a.stand(t, api, "n1")
		time.Sleep(yieldPause / 2)
		b := stands(t, api, "n2")
		within(t, "n2 leads", b.terms)
		select {
		case <-a.terms:
			t.Fatal("n1 leads, and no node answers it")
		case <-time.After(time.Minute):
		}
	})
}

// TestDeletedLeaseIsMadeAgain: a lease that somebody deletes is made again, and one leads on.
func TestDeletedLeaseIsMadeAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := heldBy("")
		term := within(t, "nobody leads", stands(t, api, "n1").terms)
		other := stands(t, api, "n2")
		time.Sleep(10 * time.Second)
		err := api.CoordinationV1().Leases(leaseSpace).Delete(t.Context(), leaseName, metav1.DeleteOptions{})
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Second)
		synctest.Wait()
		led := term.Err() == nil
		if node := holder(t, api); (node == "n1") != led || len(other.terms) > 0 && led {
			t.Errorf("%s has the lease; n1 leads: %v, n2 leads: %v", node, led, len(other.terms) > 0)
		}
	})
}
