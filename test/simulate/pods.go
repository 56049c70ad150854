package simulate

import (
	"maps"
	"net/netip"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/egret-net/egret/api/v1"
	"github.com/egret-net/egret/internal/ref"
	"github.com/egret-net/egret/internal/world"
)

// namespace is that of pods of the default network.
const namespace = "team"

// pod is one that a kubelet runs.
type pod struct {
	s     *Sim
	key   string
	uid   string
	on    *machine
	boot  int
	index int // of its addresses in the default network; -1: none yet
	inOwn int // the same in its own network
	sends bool
	ended bool
	freed time.Time
	// caughtUp is when its CNI ADD last read what it was created under.
	caughtUp time.Time
	at       *world.Attachment
}

// startPod creates a pod with a node, unless there is one of the name.
func (s *Sim) startPod(name, on, group string) {
	if s.api.objects["pods"][podKey(name)] == nil && s.machine(on).hasNode() {
		s.createPod(name, group)
		s.bindPod(name, on)
	}
}

// createPod creates a pod without a node, unless there is one of the name.
func (s *Sim) createPod(name, group string) {
	key := podKey(name)
	if s.api.objects["pods"][key] == nil {
		o := &corev1.Pod{}
		o.Namespace, o.Name, _ = strings.Cut(key, "/")
		o.Labels = map[string]string{"group": group}
		s.api.put("pods", o)
	}
}

// bindPod gives a pod without a node one, whose kubelet starts it.
func (s *Sim) bindPod(name, on string) {
	m, key := s.machine(on), podKey(name)
	o := get[*corev1.Pod](s.api, "pods", key)
	if o == nil || o.Spec.NodeName != "" || !m.hasNode() {
		return
	}
	o.Spec.NodeName = m.name
	stored := s.api.put("pods", o)
	p := &pod{s: s, key: key, uid: string(stored.GetUID()), on: m, boot: m.boot, index: -1, inOwn: -1}
	if old := s.pods[key]; old != nil {
		s.pods[key+" "+old.uid] = old
	}
	s.pods[key] = p
	s.after(200*time.Millisecond, p.add)
}

// add is CNI ADD, which the kubelet tries again.
func (p *pod) add() {
	o := get[*corev1.Pod](p.s.api, "pods", p.key)
	if p.ended || p.boot != p.on.boot || o == nil || string(o.UID) != p.uid {
		return
	}
	ready, further := p.on.process.reaches() && len(p.on.subnetsIn(ref.DefaultNetwork)) > 0, []world.Interface(nil)
	if ready {
		further, ready = p.interfacesIn(p.primary())
	}
	if !ready {
		p.s.after(time.Second, p.add)
		return
	}
	if p.index < 0 {
		p.index = p.s.freeIndex(p.on, func(o *pod) int { return o.index })
	}
	ips := addressesAt(p.on.subnetsIn(ref.DefaultNetwork), p.index)
	p.at = &world.Attachment{Namespace: o.Namespace, Name: o.Name, UID: p.uid, HostIface: "veth-" + p.uid,
		MAC: world.MAC(ips[0]), IPs: ips, Further: further}
	o.Annotations = networksAnnotation(p.at)
	must(p.on.agent.Source().Observe(p.s.api.put("pods", o)))
	p.on.attachments[p.at.HostIface] = p.at
	p.caughtUp = p.s.now
	p.on.agent.Attach(p.at)
	p.on.process.wake()
}

func prefixes(ips []netip.Addr) (out []netip.Prefix) {
	for _, ip := range ips {
		out = append(out, netip.PrefixFrom(ip, map[bool]int{true: 24, false: 64}[ip.Is4()]))
	}
	return out
}

// freeIndex returns the first index that no pod of a node has, or had lately.
func (s *Sim) freeIndex(m *machine, of func(*pod) int) int {
	used := map[int]bool{}
	for _, p := range s.pods {
		used[of(p)] = used[of(p)] || p.on == m && p.boot == m.boot && (!p.ended || s.now.Sub(p.freed) < s.reuse)
	}
	for i := 0; ; i++ {
		if !used[i] {
			return i
		}
	}
}

// started is told by a node's agent that an ADD is over.
func (m *machine) started(at *world.Attachment, err error) {
	p := m.s.pods[at.Key()]
	if p == nil || p.uid != at.UID || p.ended {
		return
	}
	if err != nil {
		delete(m.attachments, p.at.HostIface)
		m.s.after(time.Second, p.add)
		return
	}
	p.sends = true
	m.s.after(500*time.Millisecond, p.runs)
}

// runs is the kubelet's word that a pod does.
func (p *pod) runs() {
	o := get[*corev1.Pod](p.s.api, "pods", p.key)
	if o == nil || string(o.UID) != p.uid {
		return
	}
	o.Status.Phase, o.Status.PodIPs = corev1.PodRunning, nil
	for _, ip := range p.at.IPs {
		o.Status.PodIPs = append(o.Status.PodIPs, corev1.PodIP{IP: ip.String()})
	}
	o.Status.PodIP = p.at.IPs[0].String()
	p.s.api.put("pods", o)
}

// endPod deletes a pod. By force, its object goes at once.
func (s *Sim) endPod(name string, force bool) {
	p := s.pods[podKey(name)]
	o := get[*corev1.Pod](s.api, "pods", podKey(name))
	if p == nil || o == nil || string(o.UID) != p.uid {
		return
	}
	if force {
		s.api.delete("pods", p.key)
	} else if o.DeletionTimestamp == nil {
		now := metav1.NewTime(s.now)
		o.DeletionTimestamp = &now
		s.api.put("pods", o)
	}
	s.after(300*time.Millisecond, p.remove)
}

// remove is CNI DEL, which the kubelet tries again. Then the object goes.
func (p *pod) remove() {
	if p.ended {
		return
	}
	if p.boot == p.on.boot && p.at != nil {
		if !p.on.process.runs() {
			p.s.after(time.Second, p.remove)
			return
		}
		p.on.agent.Detach(p.at.HostIface)
		p.on.process.wake()
		delete(p.on.attachments, p.at.HostIface)
	}
	p.ended, p.sends, p.freed = true, false, p.s.now
	p.s.after(100*time.Millisecond, p.forget)
}

// forget deletes the pod's object.
func (p *pod) forget() {
	if o := p.s.api.objects["pods"][p.key]; o != nil && string(o.GetUID()) == p.uid {
		p.s.api.delete("pods", p.key)
	}
}

// relabel has a pod be of another group.
func (s *Sim) relabel(name, group string) {
	if o := get[*corev1.Pod](s.api, "pods", podKey(name)); o != nil {
		o.Labels = map[string]string{"group": group}
		s.api.put("pods", o)
	}
}

// relabelNamespace changes the label of a namespace, unless there is none of the name.
func (s *Sim) relabelNamespace(name, value string) {
	if o := get[*corev1.Namespace](s.api, "namespaces", name); o != nil {
		o.Labels["tenant"] = value
		s.api.put("namespaces", o)
	}
}

func (a *api) egressIP(name string) *v1.EgressIP { return get[*v1.EgressIP](a, "egressips", name) }

// setEgressIP creates or changes one, for the pods of a group.
func (s *Sim) setEgressIP(name, group string, ips []netip.Addr) {
	o := s.api.egressIP(name)
	if o == nil {
		o = &v1.EgressIP{}
		o.Name = name
	}
	o.Generation++
	o.Spec.EgressIPs = nil
	for _, ip := range ips {
		o.Spec.EgressIPs = append(o.Spec.EgressIPs, ip.String())
	}
	o.Spec.NamespaceSelector = metav1.LabelSelector{MatchLabels: map[string]string{"tenant": "x"}}
	o.Spec.PodSelector = metav1.LabelSelector{MatchLabels: map[string]string{"group": group}}
	s.api.put("egressips", o)
}

// sending are the pods that send, by name.
func (s *Sim) sending() (out []*pod) {
	for _, key := range slices.Sorted(maps.Keys(s.pods)) {
		if p := s.pods[key]; p.sends && p.boot == p.on.boot {
			out = append(out, p)
		}
	}
	return out
}

func (p *pod) name() string { return strings.TrimPrefix(p.key, namespace+"/") }
