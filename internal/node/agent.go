package node

import (
	"context"
	"log/slog"
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/egret-net/egret/internal/feature"
	"github.com/egret-net/egret/internal/host"
	"github.com/egret-net/egret/internal/kube"
	"github.com/egret-net/egret/internal/node/cniserver"
	"github.com/egret-net/egret/internal/plane/ovs"
	"github.com/egret-net/egret/internal/ref"
	"github.com/egret-net/egret/internal/world"
)

// Agent is one node's agent.
type Agent struct {
	config *world.Config
	self   string
	kinds  feature.Kinds
	log    *slog.Logger
	host   *host.Follower
	loop   *Loop
	ovs    *ovs.DB
	// setPaused has OVS remember of a pod's interface whether what it sends outside is dropped.
	setPaused func(ctx context.Context, hostIface string, paused bool) error
	api       *API
	source    *kube.Source
	cni       *cniserver.Server
	metrics   *Metrics
	reads     reads
	inspector inspector
	startup   startup
	// confirmed says whether the zone's hypervisor has what the Northbound says.
	confirmed func() bool

	publisher *publisher
	firewall  *firewall
	// reporting is of the loop alone.
	reporting

	holding  *holding
	clearing *clearing
	chores   *chores

	*podNetwork
}

// runMachines asks the machines.
func (a *Agent) runMachines(w *world.World, now time.Time) time.Time {
	return earliestOf(a.clearing.stepMachine(w, now), a.holding.stepMachine(w, now), a.source.LookAtWatches(now))
}

// beginActing has the agent act on the cluster, which is known now.
func (a *Agent) beginActing() {
	a.loop.Do(filterOrphans)
	a.loop.Do(func(w *world.World) { a.clearing.beginMachine(w, a.api.BootID) })
	a.loop.Synced()
}

// reportGrown tells the others what this node holds as soon as it does: they steer packets here then.
func (a *Agent) reportGrown(_ context.Context, w *world.World, o Outcome) {
	a.holding.takeGrown(o.State)
	if n, h := w.Node(a.self), w.Host(); n != nil && h != nil {
		a.fillMailboxes(w, n, h, o)
	}
}

// afterRound runs in the loop when a round is over: it tells the others, and whoever waits.
func (a *Agent) afterRound(ctx context.Context, w *world.World, o Outcome) {
	n, h := w.Node(a.self), w.Host()
	if n != nil && h != nil {
		a.takeNetwork(n, a.config.PodMTU(h), o)
		a.fillMailboxes(w, n, h, o)
	}
	if n != nil && cordonIsOver(n, a.api.BootID) {
		a.chores.beginChore(uncordon, func() error { return a.api.uncordonNode(ctx, n.Version, a.log) })
	}
	a.tidyPods(ctx, w)
	a.askWatchers(w)
}

// fillMailboxes puts what is new into the mailboxes.
func (a *Agent) fillMailboxes(w *world.World, n *world.Node, h *world.Host, o Outcome) {
	a.publisher.forgetLost()
	faults := host.NetworkFaults(w, n, h)
	if host.FaultsKnown(w.Holding(a.self), faults) {
		a.publisher.publishAnnotations(n, host.NodeAnnotations(a.self, h, n, a.config))
	}
	a.composeNext(w, n, o, a.confirmed() && !o.Unconfirmed, a.api.BootID)
	a.last.Problems = append(a.last.Problems, host.FaultProblems(faults)...)
	a.last.Problems = append(a.last.Problems, a.holding.machine.Problems()...)
	silent := a.silentProblems()
	a.last.Problems = append(a.last.Problems, allOfNode(a.self, world.ReasonNoAnswer, silent)...)
	a.last.Problems = append(a.last.Problems, a.ineffectiveProblems(o.State, silent)...)
	a.last.Problems = append(a.last.Problems, allOfNode(a.self, world.ReasonLateWatch, a.source.StandingStill())...)
	a.last.Problems = append(a.last.Problems, allOfNode(a.self, world.ReasonUnreachable, a.unreachableProblems())...)
	a.last.Problems = append(a.last.Problems, allOfNode(a.self, world.ReasonOverlap, a.config.OverlappedBy(h))...)
	a.last.Problems = append(a.last.Problems, allOfNode(a.self, world.ReasonMTU, a.config.TooSmall(h))...)
	a.last.Problems = append(a.last.Problems, allOfNode(a.self, world.ReasonFirewall, a.firewall.problemTexts())...)
	a.last.Conflicts = a.holding.machine.Conflicts()
	a.last.Port = a.config.AgentPort
	a.publisher.reports.putValue(a.last)
	a.metrics.countReport(a.last, h)
	a.steerOwnPods(a.last)
}

// steerOwnPods has this node's own pods led to what it holds without waiting for Kubernetes to tell of it.
func (a *Agent) steerOwnPods(r Report) {
	if a.known != nil && maps.Equal(a.known, r.Holding) {
		return
	}
	a.known = r.Holding
	own := r.holdingOf(a.self, a.api.BootID)
	a.loop.Do(func(w *world.World) { w.SetOwn(own) })
}

// tidyPods ends the paused egress of pods, and takes the addresses of those that have ended.
func (a *Agent) tidyPods(ctx context.Context, w *world.World) {
	paused := 0
	defer func() { a.metrics.paused.Set(float64(paused)) }()
	for _, key := range w.Attachments() {
		at, p := w.Attachment(key), w.Pod(key)
		if at.EgressPaused {
			paused++
		}
		if at.EgressPaused && a.kinds.AwaitedObject(&w.View, key) == (ref.Object{}) {
			a.chores.beginChore(attachmentChore{at, resume}, func() error { return a.resumeEgress(ctx, at) })
		}
		if p != nil && p.Completed && p.UID == at.UID {
			a.chores.beginChore(attachmentChore{at, release}, func() error { return a.releaseCompleted(ctx, at) })
		}
	}
}

func (a *Agent) resumeEgress(ctx context.Context, at *world.Attachment) error {
	if err := a.setPaused(ctx, at.HostIface, false); err != nil {
		a.log.Warn("could not end a pod's paused egress", "pod", at.Key(), "error", err)
		return err
	}
	free := *at
	free.EgressPaused = false
	return a.loop.Offer(ctx, func(w *world.World) {
		if w.Attachment(at.Key()) != at {
			return
		}
		w.SetAttachment(&free)
	})
}

func (a *Agent) releaseCompleted(ctx context.Context, at *world.Attachment) error {
	err := a.cni.ReleaseCompleted(ctx, at.Namespace, at.Name, at.UID)
	if err != nil {
		a.log.Warn("could not release the addresses of a completed pod", "pod", at.Key(), "error", err)
	}
	return err
}

// postEvent tells people of a pod.
func (a *Agent) postEvent(at *world.Attachment, reason, message string) {
	a.log.Warn("pod "+message, "pod", at.Key(), "reason", reason)
	e := kube.Event{
		Regarding: corev1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: at.Namespace, Name: at.Name,
			UID: types.UID(at.UID)},
		Warning: true, Reason: reason, Action: "Attach", Note: message,
	}
	go func() {
		if err := postEvent(context.Background(), a.api.Clients, a.self, e); err != nil {
			a.log.Warn("could not write an Event", "pod", at.Key(), "error", err)
		}
	}()
}

// newAgent is an agent without its targets; Run gives it those.
func newAgent(self string, c *world.Config, kinds feature.Kinds, log *slog.Logger) *Agent {
	a := &Agent{config: c, kinds: kinds, self: self, log: log, metrics: NewMetrics()}
	a.source = kube.NewSource(nil, log) // until it is connected, it follows no kind
	a.loop = NewLoop(kinds.NewWorld(self, c), kinds.AllFeatures(), log)
	a.holding, a.chores = newHolding(self, a.loop, log), newChores(a.loop.Again)
	a.podNetwork = &podNetwork{watchers: &watchers{again: a.loop.Again}}
	a.inspector = inspector{kinds: kinds, loop: a.loop, reading: make(chan struct{}, 1)}
	a.clearing = newClearing(a.loop, a.metrics.countQuestion, log)
	a.host = &host.Follower{Config: c, Log: log, Wake: a.loop.Wake}
	a.firewall = newFirewall(c.Families(), log)
	a.loop.Decide, a.loop.Grown, a.loop.After, a.loop.Ran = a.runMachines, a.reportGrown, a.afterRound,
		a.metrics.countRound
	return a
}
