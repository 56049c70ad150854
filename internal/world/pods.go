package world

import (
	"iter"
	"maps"
	"slices"
)

// Pods lists all pods, "namespace/name", in no order.
func (w *View) Pods() []string {
	w.saw(KindPods, "")
	return slices.Collect(maps.Keys(w.pods))
}

// EachPod yields all pods in no order, for readers that do not record.
func (w *World) EachPod() iter.Seq[*Pod] { return maps.Values(w.pods) }

// PodsIn yields the pods of a namespace in no order, for readers that do not record.
func (w *World) PodsIn(ns string) iter.Seq[*Pod] { return maps.Values(w.podsIn[ns]) }

// Pod is a pod, or nil.
func (w *View) Pod(key string) *Pod {
	w.saw(KindPod, key)
	return w.pods[key]
}

// SetPod adds or replaces a pod.
func (w *World) SetPod(p *Pod) []Touch {
	key := p.Key()
	old := w.pods[key]
	w.pods[key] = p
	if w.podsIn[p.Namespace] == nil {
		w.podsIn[p.Namespace] = map[string]*Pod{}
	}
	w.podsIn[p.Namespace][key] = p
	switch {
	case old == nil:
		return []Touch{{KindPod, key}, {KindPods, ""}}
	case old.same(p):
		return nil
	}
	return []Touch{{KindPod, key}}
}

// DelPod removes a pod.
func (w *World) DelPod(key string) []Touch {
	p := w.pods[key]
	if p == nil {
		return nil
	}
	delete(w.pods, key)
	if delete(w.podsIn[p.Namespace], key); len(w.podsIn[p.Namespace]) == 0 {
		delete(w.podsIn, p.Namespace)
	}
	return []Touch{{KindPod, key}, {KindPods, ""}}
}

func (p *Pod) same(o *Pod) bool {
	return p.UID == o.UID && p.Node == o.Node && p.HostNetwork == o.HostNetwork && p.Running == o.Running && p.Completed == o.Completed &&
		maps.Equal(p.Labels, o.Labels) && slices.Equal(p.IPs, o.IPs)
}

// Namespace is a namespace, or nil.
func (w *View) Namespace(name string) *Namespace {
	w.saw(KindNamespace, name)
	return w.namespaces[name]
}

// SetNamespace adds or replaces a namespace.
func (w *World) SetNamespace(n *Namespace) []Touch {
	if old := w.namespaces[n.Name]; old != nil && maps.Equal(old.Labels, n.Labels) {
		return nil
	}
	w.namespaces[n.Name] = n
	return append(w.reselect(n.Name), Touch{KindNamespace, n.Name})
}

// DelNamespace removes a namespace.
func (w *World) DelNamespace(name string) []Touch {
	if w.namespaces[name] == nil {
		return nil
	}
	delete(w.namespaces, name)
	return append(w.reselect(name), Touch{KindNamespace, name})
}
