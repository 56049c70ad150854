package world

import (
	"cmp"
	"iter"
	"maps"
	"slices"
)

// Pods lists all pods, "namespace/name", in no order.
func (w *View) Pods() []string {
	w.noteRead(KindPods, "")
	return slices.Collect(maps.Keys(w.pods))
}

// EachPod yields all pods in no order, for readers that do not record.
func (w *World) EachPod() iter.Seq[*Pod] { return maps.Values(w.pods) }

// PodsIn lists the pods of a namespace by name. Use it seldom: its readers are told of all pods that come and go.
func (w *View) PodsIn(namespace string) []*Pod {
	w.noteRead(KindPods, "")
	if w.podsIn[namespace] == nil {
		return nil
	}
	var out []*Pod
	for _, key := range slices.Sorted(maps.Keys(w.podsIn[namespace].pods)) {
		out = append(out, w.Pod(key))
	}
	return out
}

// Pod is a pod, or nil.
func (w *View) Pod(key string) *Pod {
	w.noteRead(KindPod, key)
	return w.pods[key]
}

// SetPod adds or replaces a pod.
func (w *World) SetPod(p *Pod) { Set(w, KindPod, p) }

// DelPod removes a pod.
func (w *World) DelPod(key string) { Del[Pod](w, KindPod, key) }

// podChanged keeps the pods of each namespace, and whose each address is.
func (w *World) podChanged(old, now *Pod) {
	if old != nil {
		w.podsIn[old.Namespace].removePod(old)
	}
	if now == nil {
		if len(w.podsIn[old.Namespace].pods) == 0 {
			delete(w.podsIn, old.Namespace)
		}
		w.updatePodAddresses(old, nil)
		return
	}
	if w.podsIn[now.Namespace] == nil {
		w.podsIn[now.Namespace] = newPodGroup()
	}
	w.podsIn[now.Namespace].addPod(now)
	w.updatePodAddresses(old, now)
}

func (p *Pod) sameState(o *Pod) bool {
	return p.UID == o.UID && p.Node == o.Node && p.HostNetwork == o.HostNetwork && p.Running == o.Running &&
		p.Completed == o.Completed && p.Confirmed == o.Confirmed && p.Terminating == o.Terminating &&
		p.Created.Equal(o.Created) &&
		maps.Equal(p.Labels, o.Labels) && slices.Equal(p.IPs, o.IPs) && slices.Equal(p.HostPorts, o.HostPorts) &&
		slices.Equal(p.ProbePorts, o.ProbePorts) && slices.Equal(p.OpenPorts, o.OpenPorts) &&
		slices.Equal(p.PortProblems, o.PortProblems) &&
		slices.EqualFunc(p.Further, o.Further, Interface.sameInterface)
}

// decidesPod is how decisions stand over Pods: a decision changes nothing of a Pod, and has its Events alone.
func decidesPod() Decides[Pod] {
	return Decides[Pod]{UID: func(p *Pod) string { return p.UID },
		Over: func(shown *Pod, _ Decision) *Pod { return shown }, Same: func(_, _ *Pod) bool { return true }}
}

// Namespace is a namespace, or nil.
func (w *View) Namespace(name string) *Namespace {
	w.noteRead(KindNamespace, name)
	return w.namespaces[name]
}

// SetNamespace adds or replaces a namespace.
func (w *World) SetNamespace(n *Namespace) { Set(w, KindNamespace, n) }

// DelNamespace removes a namespace.
func (w *World) DelNamespace(name string) { Del[Namespace](w, KindNamespace, name) }

func (w *World) namespaceChanged(old, now *Namespace) {
	if old == nil || now == nil || !old.sameNamespace(now) {
		w.reselectNamespace(cmp.Or(now, old).Name)
	}
}

func (n *Namespace) sameNamespace(o *Namespace) bool {
	return maps.Equal(n.Labels, o.Labels) && n.OwnNetwork == o.OwnNetwork && n.Terminating == o.Terminating &&
		n.LimitsNetworks == o.LimitsNetworks &&
		slices.Equal(n.Networks, o.Networks)
}
