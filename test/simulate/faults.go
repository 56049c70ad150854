package simulate

import (
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	egretv1 "github.com/egret-net/egret/api/egret/v1"
	"github.com/egret-net/egret/internal/kube"
	"github.com/egret-net/egret/internal/plan"
	"github.com/egret-net/egret/internal/probe"
)

// following is how long an agent has, after a fault is over, to learn of what it missed: it lists all, one kind after
// the other. Then the promise begins.
const following = 3 * time.Second

// disturbs notes that a node's agent cannot follow, for as long.
func (m *machine) disturbs(d time.Duration) {
	m.s.verdict.disturb(m.name, m.s.now, m.s.now.Add(d+following), false)
}

// kill kills the agent, and starts it again later.
func (m *machine) kill(d time.Duration) {
	m.disturbs(d)
	m.stopAgent()
	m.downs++
	boot := m.boot // the next one starts an agent, and ends the fault
	m.s.after(d, func() {
		if m.boot != boot {
			return
		}
		if m.downs--; m.downs == 0 && !m.off {
			m.startAgent()
		}
	})
}

// hang is SIGSTOP of the agent, and SIGCONT later.
func (m *machine) hang(d time.Duration) {
	m.disturbs(d)
	p := m.process
	hang(m.s, p, d)
	m.s.after(d, m.renewLease) // that is overdue by then
	m.s.after(d, func() {
		if m.process == p && p.hangs == 0 {
			m.noteStillLate()
		}
	})
}

// noteStillLate notes watches that are late when the agent goes on. It has until then not counted for how long a watch
// has stood still, and begins to count.
func (m *machine) noteStillLate() {
	late := slices.MaxFunc(slices.Collect(maps.Values(m.client.reached)), time.Time.Compare).Sub(m.s.now)
	for _, d := range slices.Clone(m.s.verdict.disturbed) {
		if d.node == m.name && d.late && d.concerns(m.s.now) && late > m.s.pace.Watch {
			m.s.verdict.disturb(m.name, d.from, m.s.now.Add(min(late, kube.StillAtMost)+following), true)
		}
	}
}

func hang(s *Sim, p *process, d time.Duration) {
	p.hangs++
	s.after(d, func() {
		if p.hangs--; p.hangs == 0 {
			p.goOn()
		}
	})
}

// stall has the node's OVN carry out nothing for a while.
func (m *machine) stall(d time.Duration) {
	m.disturbs(d)
	m.stalled = later(m.stalled, m.s.now.Add(d))
}

// fail has a part of the node's targets refuse all rows for a while.
func (m *machine) fail(part string, d time.Duration) {
	m.disturbs(d)
	m.failing[part] = later(m.failing[part], m.s.now.Add(d))
}

// retries is how long after a failure an agent tries again at most (internal/node).
const retries = 5 * time.Second

// cannotWrite reports whether the node's targets take nothing, or its agent has yet to find out that they do again.
func (m *machine) cannotWrite() bool {
	failed := func(part string) bool { return m.s.now.Before(m.failing[part].Add(retries)) }
	return m.s.now.Before(m.stalled) || failed(hostPart) || failed(northPart)
}

// cutOff has the agent not reach the API server for a while, nor the controller that is there.
func (m *machine) cutOff(d time.Duration) {
	m.disturbs(d)
	m.cuts++
	m.reach()
	m.s.after(d, func() {
		m.cuts--
		m.reach()
	})
}

// reach has the machine's processes reach the API server, or not.
func (m *machine) reach() {
	clients := []*client{m.client}
	for _, c := range m.s.controllers {
		if c.node == m.hardware {
			clients = append(clients, c.client)
		}
	}
	for _, c := range clients {
		switch cut := m.cuts > 0 || m.off; {
		case cut && !c.process.cut:
			c.cutOff()
		case !cut && c.process.cut:
			c.restore()
		}
	}
}

// isolate has no packet of another node arrive, and none arrive there.
func (m *machine) isolate(d time.Duration) {
	m.isolated++
	m.s.tellTunnels()
	m.s.after(d, func() {
		m.isolated--
		m.s.tellTunnels()
	})
}

// answers says whether a node answers others.
func (m *machine) answers() bool { return m != nil && m.isolated == 0 && !m.off }

// part has no packet pass between two nodes, both of which receive the others.
func (m *machine) part(o *machine, d time.Duration) {
	count := func(by int) {
		m.apart[o], o.apart[m] = m.apart[o]+by, o.apart[m]+by
		m.s.tellTunnels()
	}
	count(1)
	m.s.after(d, func() { count(-1) })
}

// receives says whether packets pass between two nodes.
func (m *machine) receives(o *machine) bool { return m.answers() && o.answers() && m.apart[o] == 0 }

// tellTunnels has all agents see which tunnels are up. BFD takes a while to notice.
func (s *Sim) tellTunnels() {
	s.after(400*time.Millisecond, func() {
		for _, name := range slices.Sorted(maps.Keys(s.machines)) {
			if m := s.machines[name]; m.agent != nil {
				m.agent.Tunnels(m.sessions())
				m.process.wake()
			}
		}
	})
}

// reboot is a power cut. The kubelet starts all pods again.
func (m *machine) reboot(d time.Duration) {
	if m.off {
		return
	}
	m.disturbs(d)
	m.powerOff()
	m.s.after(d, func() {
		m.off = false
		m.reach()
		m.bootUp()
		m.s.tellTunnels()
		for _, key := range slices.Sorted(maps.Keys(m.s.pods)) {
			if p := m.s.pods[key]; p.on == m && !p.ended {
				p.boot, p.index, p.inOwn, p.at = m.boot, -1, -1, nil
				m.s.after(time.Second, p.add)
			}
		}
	})
	m.s.after(40*time.Second, func() { m.tellReady(!m.off) })
	m.s.after(max(d, 40*time.Second)+5*time.Second, func() { m.tellReady(!m.off) })
}

func (m *machine) powerOff() {
	m.stopAgent()
	m.off, m.have = true, plan.New()
	m.target = &target{s: m.s, m: m, north: plan.New()}
	m.s.verdict.changed(m)
	m.s.verdict.noteTranslations(m)
	for _, p := range m.s.sending() {
		if p.on == m {
			p.sends = false
		}
	}
	m.s.tellTunnels()
	m.reach()
}

// orphaned is how long Kubernetes leaves the pods of a Node that is gone.
const orphaned = 40 * time.Second

// rename powers the machine off and deletes its Node, so that Kubernetes deletes its report, and later its pods. The
// machine comes back with its addresses and labels under another name.
func (m *machine) rename(d time.Duration) {
	old := get[*corev1.Node](m.s.api, "nodes", m.name)
	if m.off || old == nil {
		return
	}
	m.disturbs(d)
	m.powerOff()
	for _, c := range m.s.controllers {
		if c.node == m.hardware {
			c.kill(d)
		}
	}
	a := m.s.api
	for _, plural := range []string{"nodes", "egressnodes"} {
		a.delete(plural, m.name)
	}
	for _, key := range slices.Sorted(maps.Keys(m.s.pods)) {
		if p := m.s.pods[key]; p.on == m && !p.ended {
			p.ended, p.freed = true, m.s.now
			m.s.after(orphaned, p.forget)
		}
	}
	delete(a.leases, m.name)
	delete(m.s.machines, m.name)
	m.s.after(d, func() {
		m.name = map[bool]string{true: "again-" + m.hardware, false: m.hardware}[m.name == m.hardware]
		m.s.machines[m.name], m.off = m, false
		m.join(old.Labels)
		m.reach()
		m.s.tellTunnels()
	})
}

// reregister deletes the machine's Node, so that Kubernetes deletes its report. After a while, and before Kubernetes
// deletes its pods, its kubelet creates the Node again, with its labels. The machine, its agent and its pods go on.
func (m *machine) reregister(d time.Duration) {
	a, old := m.s.api, get[*corev1.Node](m.s.api, "nodes", m.name)
	if old == nil {
		return
	}
	for _, plural := range []string{"nodes", "egressnodes"} {
		a.delete(plural, m.name)
	}
	m.s.after(d, func() {
		o := &corev1.Node{}
		o.Name, o.Labels, o.Status = m.name, old.Labels, old.Status
		o.Status.NodeInfo.BootID = m.bootID() // it may have booted meanwhile
		a.put("nodes", o)
	})
}

// tellReady is the node controller's word.
func (m *machine) tellReady(is bool) {
	o := get[*corev1.Node](m.s.api, "nodes", m.name)
	if o == nil {
		return
	}
	status := map[bool]corev1.ConditionStatus{true: corev1.ConditionTrue, false: corev1.ConditionUnknown}[is]
	if o.Status.Conditions[0].Status != status {
		o.Status.Conditions[0].Status = status
		m.s.api.put("nodes", o)
	}
}

// remember keeps a node's report, and overwrite writes that in the place of what it is now: somebody restores it.
func (m *machine) remember() { m.former = get[*egretv1.EgressNode](m.s.api, "egressnodes", m.name) }

func (m *machine) overwrite() {
	if o := get[*egretv1.EgressNode](m.s.api, "egressnodes", m.name); o != nil && m.former != nil {
		o.Status, m.s.api.reportsLost = *m.former.Status.DeepCopy(), true
		m.s.api.put("egressnodes", o)
	}
}

// prober asks nodes whether they answer, as a controller does.
type prober struct {
	c       *controllerOn
	judge   probe.Judge
	start   time.Time
	targets []probe.Target
	signs   map[string]probe.Signs
}

// Follow says which nodes to probe.
func (p *prober) Follow(targets []probe.Target, _ probe.Witnesses) {
	signs := map[string]probe.Signs{}
	for _, t := range targets {
		now := p.c.s.now.Sub(p.start)
		signs[t.Node] = probe.Signs{Host: now, Agent: now, Direct: now, Since: now}
		if old, is := p.signs[t.Node]; is {
			signs[t.Node] = old
		}
	}
	p.targets, p.signs = targets, signs
}

// look asks all, and tells the controller what has changed. The API server's machine answers unless this one is cut
// off.
func (p *prober) look() {
	if !p.c.process.runs() {
		return
	}
	now, own, witnessed := p.c.s.now.Sub(p.start), p.c.s.machine(p.c.node), time.Duration(0)
	if own.cuts == 0 {
		witnessed = now
	}
	for name, x := range p.signs {
		if name == own.name || own.receives(p.c.s.machines[name]) {
			x.Host, x.Agent, x.Direct = now, now, now
			p.signs[name] = x
		}
	}
	changes := p.judge.Look(now, p.signs, witnessed)
	for _, change := range changes {
		p.c.steps.Found(change)
	}
	if len(changes) > 0 {
		p.c.process.wake()
	}
}
