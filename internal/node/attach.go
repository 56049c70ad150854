package node

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/egret-net/egret/internal/kube"
	"github.com/egret-net/egret/internal/node/cniserver"
	"github.com/egret-net/egret/internal/ref"
	"github.com/egret-net/egret/internal/world"
)

const (
	// podWait is how long ADD waits for the watch to bring the pod before it asks the API server.
	podWait = 500 * time.Millisecond
	// egressWait is how long a pod that starts waits for a holder of its egress IP; then it starts and sends nothing
	// outside.
	egressWait = 2 * time.Second
)

var _ cniserver.Node = (*Agent)(nil)

// SaidAddresses are those that pods of this node say they have in a network.
func (a *Agent) SaidAddresses(ctx context.Context, network string) (all []netip.Addr, err error) {
	err = a.loop.Ask(ctx, func(w *world.World) {
		for p := range w.EachPod() {
			if p.Node == a.self {
				all = append(all, p.SaidIn(network)...)
			}
		}
	})
	return all, err
}

// UserspaceDatapath says whether OVS forwards in userspace.
func (a *Agent) UserspaceDatapath() bool { return a.config.UserspaceOVS }

// Pod waits briefly for the pod to be in the world; else it asks the API server for it. Whether it is refused is asked
// again when the pod is attached (attachPod), after the reads.
func (a *Agent) Pod(ctx context.Context, namespace, name, uid string) (cniserver.PodInfo, error) {
	short, cancel := context.WithTimeout(ctx, podWait)
	defer cancel()
	info, err := askUntilFinal(short, a.watchers, func(w *world.World) (cniserver.PodInfo, bool) {
		p := w.Pod(namespace + "/" + name)
		if p == nil || uid != "" && p.UID != uid || w.Namespace(namespace) == nil {
			return cniserver.PodInfo{}, false
		}
		return a.podInfo(w, p), true
	})
	if err == nil {
		return info, nil
	}
	return a.askForPod(ctx, namespace, name)
}

func (a *Agent) podInfo(w *world.World, p *world.Pod) cniserver.PodInfo {
	return cniserver.PodInfo{UID: p.UID, HostNetwork: p.HostNetwork, Network: ownNetwork(w, p.Namespace),
		Refused: a.kinds.RefusePod(&w.View, p.Namespace, p.Name)}
}

// askForPod has the world take in the pod and its namespace as the API server has them.
func (a *Agent) askForPod(ctx context.Context, namespace, name string) (info cniserver.PodInfo, err error) {
	o, err := a.api.Pod(ctx, namespace, name)
	if err == nil {
		err = a.api.Observe(o)
	}
	if err == nil {
		err = a.reads.namespace.doShared(ctx, namespace)
	}
	if err == nil {
		err = a.reads.applied(ctx)
	}
	if err != nil {
		return cniserver.PodInfo{}, err
	}
	err = a.loop.Ask(ctx, func(w *world.World) { info = a.podInfo(w, kube.Pod(o)) })
	return info, err
}

// Annotate writes the pod's annotations: the other nodes learn its addresses from them before it sends
// its first packet.
func (a *Agent) Annotate(ctx context.Context, p cniserver.PodPort, nets cniserver.PodNetworks) error {
	annotations, err := podAnnotations(p, nets)
	if err != nil {
		return err
	}
	return a.api.AnnotatePod(ctx, p.Namespace, p.Name, p.UID, annotations)
}

// Attached returns when the targets hold the plan with the pod in it, by what Kubernetes says now, and its egress IP,
// if it has one, is ready or holds it back. The error names processes that do not answer, which it waited for.
func (a *Agent) Attached(ctx context.Context, p cniserver.PodPort) error {
	err := a.attachPod(ctx, attachmentOf(p))
	if silent := a.silentProblems(); err != nil && len(silent) > 0 {
		return fmt.Errorf("%s: %w", strings.Join(silent, "; "), err)
	}
	return err
}

func (a *Agent) attachPod(ctx context.Context, at *world.Attachment) error {
	group, both := errgroup.WithContext(ctx)
	group.Go(func() error {
		return a.loop.DoAndWait(both, func(w *world.World) { w.SetAttachment(at) })
	})
	group.Go(func() error { return a.reads.catchUp(both, at.Namespace) })
	if err := group.Wait(); err != nil {
		return err
	}
	refused := ""
	if err := a.loop.Ask(ctx, func(w *world.World) {
		refused = cmp.Or(a.kinds.RefusePod(&w.View, at.Namespace, at.Name), whyMisplaced(w, at))
	}); err != nil || refused != "" {
		return cmp.Or(err, errors.New(refused))
	}
	short, cancel := context.WithTimeout(ctx, egressWait)
	defer cancel()
	waitsFor, err := askUntilFinal(short, a.watchers, func(w *world.World) (ref.Object, bool) {
		object := a.kinds.AwaitedObject(&w.View, at.Key())
		return object, object == ref.Object{}
	})
	if err == nil { // the world has a holder; OVN must have it, too
		return a.loop.DoAndWait(ctx, func(*world.World) {})
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return a.pauseEgress(ctx, at, waitsFor)
}

// pauseEgress drops what the pod sends outside until a node is ready to translate it.
func (a *Agent) pauseEgress(ctx context.Context, at *world.Attachment, object ref.Object) error {
	if err := a.setPaused(ctx, at.HostIface, true); err != nil {
		return fmt.Errorf("pause the pod's egress: %w", err)
	}
	paused := *at
	paused.EgressPaused = true
	describe := strings.ToLower(object.Kind) + " " + object.Name
	if object.Namespace != "" {
		describe += " -n " + object.Namespace
	}
	a.postEvent(at, object.Kind+"NotReady", fmt.Sprintf("starts with traffic to outside the cluster dropped: no node is "+
		"ready for %s %s; see `kubectl describe %s`", object.Kind, object.Key(), describe))
	return a.loop.DoAndWait(ctx, func(w *world.World) { w.SetAttachment(&paused) })
}

// Detached forgets an attachment. It does not wait for the targets: a pod must be able to go while the cluster is not
// known yet, or cannot be asked. Its address is the last to be given again.
func (a *Agent) Detached(ctx context.Context, hostIface string) error {
	return a.loop.Offer(ctx, func(w *world.World) {
		for _, key := range w.Attachments() {
			if w.Attachment(key).HostIface == hostIface {
				w.DelAttachment(key, hostIface)
				return
			}
		}
	})
}
