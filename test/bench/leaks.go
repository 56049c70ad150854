package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/egret-net/egret/internal/plan"
	"github.com/egret-net/egret/test/harness"
)

const (
	// selectedPods use the EgressIP while something happens to it: real ones that send, the rest on nodes that exist in
	// the API only.
	selectedPods = 500
	sendingPods  = 10
)

// upset is something that happens to a cluster whose selected pods send all the time, and must not get out with another
// source.
type upset struct {
	name string
	own  bool // the pods have a network of their own
	// do makes it happen, the n-th time, and returns when all is as before, as far as it knows.
	do func(ctx context.Context, w *watchman, n int) error
}

// upsets are what leaks are looked for in. A process that is killed is started again after 0.3 s.
func upsets() []upset {
	list := []upset{
		{"failovers", false, failover}, {"failovers-own-network", true, failover},
		{"planned-moves", false, moveAway}, {"planned-moves-own-network", true, moveAway},
		{"api-outages", false, apiOutage},
	}
	for _, process := range []string{"egret-node", "ovs-vswitchd", "ovsdb-server", "ovn-controller"} {
		list = append(list, upset{"restarts-of-" + process, false, func(ctx context.Context, w *watchman, n int) error {
			if err := w.KillProcess(ctx, w.Nodes()[n%len(w.Nodes())].Name, process); err != nil {
				return err
			}
			return harness.SleepUntil(ctx, time.Now().Add(2*time.Second))
		}})
	}
	return list
}

// outageTime is how long an API server is away that is restarted by hand, or upgraded.
const outageTime = time.Minute

// apiOutage has the control plane away, and an agent start meanwhile that cannot ask it anything.
func apiOutage(ctx context.Context, w *watchman, n int) error {
	if err := w.StopControlPlane(ctx); err != nil {
		return err
	}
	end := time.Now().Add(outageTime)
	err := harness.SleepUntil(ctx, time.Now().Add(outageTime/4))
	if err == nil {
		err = w.KillProcess(ctx, w.Nodes()[n%len(w.Nodes())].Name, "egret-node")
	}
	if err == nil {
		err = harness.SleepUntil(ctx, end)
	}
	return errors.Join(err, w.StartControlPlane(context.WithoutCancel(ctx)))
}

// measure upsets the cluster again and again, and counts for each time the datagrams with a source other than an egress
// IP.
func (u upset) measure(ctx context.Context, l *lab) (err error) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	w, err := l.watchman(ctx, u.own)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.leave(ctx)) }()
	pods, err := w.populate(ctx)
	if err != nil {
		return err
	}
	return l.countLeaks(u.name, w, func(i int, leaked func(float64)) error { return u.run(ctx, l, w, pods, i, leaked) })
}

// run is one upset, until the traffic of all pods flows again.
func (u upset) run(ctx context.Context, l *lab, w *watchman, pods []*corev1.Pod, n int, leaked func(float64)) error {
	if err := u.do(ctx, w, n); err != nil {
		return err
	}
	if err := w.arrived(ctx, pods, time.Now()); err != nil {
		return err
	}
	wrong, err := w.wrong(l, fmt.Sprintf("leaks/%s run %d", u.name, n))
	total := 0
	for _, n := range wrong {
		total += n
	}
	leaked(float64(total))
	return err
}

// populate has pods of all nodes send, and makes the rest of the selected pods.
func (w *watchman) populate(ctx context.Context) (sending []*corev1.Pod, err error) {
	nodes := []*harness.FakeNode{{Name: "fake-0"}, {Name: "fake-1"}, {Name: "fake-2"}}
	if err := w.EnsureFakeNodes(ctx, nodes); err != nil {
		return nil, err
	}
	set, count := w.selectedSet()
	var fakes []*corev1.Pod
	for i := range count - sendingPods {
		fakes = append(fakes, harness.FakePod(w.space, nodes[i%len(nodes)], i/len(nodes),
			map[string]string{joinLabel: ""}))
	}
	for i := range sendingPods {
		sending = append(sending, w.sender(fmt.Sprint("sender-", i), w.Nodes()[i%len(w.Nodes())].Name))
	}
	begin := time.Now()
	if err := w.CreatePods(ctx, append(fakes, sending...)); err != nil {
		return nil, err
	}
	if err := w.arrived(ctx, sending, begin); err != nil {
		return nil, err
	}
	where, err := w.held(ctx, time.Minute)
	for _, node := range where {
		err = errors.Join(err, harness.Until(ctx, time.Minute, 200*time.Millisecond,
			func() error { return w.selected(ctx, node, set, count) }))
	}
	w.seen.Forget()
	return sending, err
}

// selectedSet returns the set of the site's pods on a holder, and how many it will have. Pods that exist in the API
// only have no addresses in a network of their own.
func (s *site) selectedSet() (set string, pods int) {
	if s.space == ownSpace {
		return plan.Names{Network: ownSpace + "_net"}.Row(podsOf(siteName)), sendingPods
	}
	return podsOf(siteName), selectedPods
}

// failover cuts the power of one egress node after the other, and gives it back when the traffic of the others' pods
// flows again.
func failover(ctx context.Context, w *watchman, n int) error {
	victim := w.Nodes()[n%2].Name
	if err := w.PowerOff(victim); err != nil {
		return err
	}
	// Kubernetes calls it NotReady after 8 s
	if err := harness.SleepUntil(ctx, time.Now().Add(10*time.Second)); err != nil {
		return err
	}
	if err := w.PowerOn(ctx, victim); err != nil {
		return err
	}
	return w.whole(ctx)
}

// moveAway takes the label from one egress node after the other, in favour of the third node.
func moveAway(ctx context.Context, w *watchman, n int) error {
	nodes := w.Nodes()
	if err := w.EgressNodes(ctx, nodes[(n+1)%3].Name, nodes[(n+2)%3].Name); err != nil {
		return err
	}
	if _, err := w.held(ctx, time.Minute); err != nil {
		return err
	}
	return harness.SleepUntil(ctx, time.Now().Add(3*time.Second)) // the former node lets go after 2 s
}
