package simulate

import (
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/egret-net/egret/internal/kube"
	"github.com/egret-net/egret/internal/probe"
)

// backup is what etcd held at a time.
type backup struct {
	version int
	objects map[string]map[string]object
	leases  map[string]probe.Lease
}

// restored are the kinds that a restore brings back. What kubelets and people would put right of pods and nodes they
// have by then: these are as they were before, in versions of the new history.
var restored = []string{"egressips", "egressiptraffics", "egressnodes", "egressservices", "namespaces",
	"services"}

// betweenBackups is how many versions what is not simulated takes after a backup: Leases, Events. Bookmarks bring them.
// Of two objects that have one version in two histories nobody knows that they differ.
const betweenBackups = 100

func (a *api) backUp() {
	a.backup = &backup{a.version, map[string]map[string]object{}, maps.Clone(a.leases)}
	for _, plural := range restored {
		a.backup.objects[plural] = maps.Clone(a.objects[plural]) // what is stored is never changed
	}
	a.othersWrite(betweenBackups)
}

func (a *api) othersWrite(n int) {
	a.version += n
	a.sendBookmarks()
}

// restore has history go back to the backup. All watches end, and what is there is listed by those who find that out.
func (a *api) restore() {
	if a.backup == nil {
		return
	}
	a.version, a.reportsLost, a.forked = a.backup.version, true, a.s.now
	a.leases = maps.Clone(a.backup.leases)
	for _, plural := range restored {
		for _, key := range slices.Sorted(maps.Keys(a.objects[plural])) {
			if _, is := a.backup.objects[plural][key]; !is {
				a.s.verdict.see(plural, a.objects[plural][key], true)
			}
		}
		a.objects[plural] = maps.Clone(a.backup.objects[plural])
		for _, key := range slices.Sorted(maps.Keys(a.objects[plural])) {
			a.s.verdict.skew.see(a.s.now, a.objects[plural][key], false)
		}
	}
	for name := range a.objects["egressnodes"] {
		if a.objects["nodes"][name] == nil {
			delete(a.objects["egressnodes"], name) // Kubernetes deletes what a Node owned
		}
	}
	for _, plural := range []string{"nodes", "pods", definitions, "endpointslices"} {
		for _, key := range slices.Sorted(maps.Keys(a.objects[plural])) {
			a.version++
			o := a.objects[plural][key].DeepCopyObject().(object)
			o.SetResourceVersion(strconv.Itoa(a.version))
			a.objects[plural][key] = o
		}
	}
	a.s.verdict.relist()
	for _, c := range a.clients {
		c.waiting = nil
		if c.process.hangs > 0 {
			c.endWatches()
			continue
		}
		for _, k := range c.kinds {
			c.resume(k)
		}
	}
}

// endWatches ends the watches of a process that hangs. If no Lease that it renewed since the backup will tell it of the
// restore, a watch that has seen more than the backup lists: there the promise ends (docs/architecture.md).
func (c *client) endWatches() {
	m := c.process.on
	for _, k := range c.kinds {
		c.lists[watchName(k)]++ // what is under way dies with the connection
	}
	c.ended, c.lost = true, ""
	if m.client != c || m.renewedBy != c.process || m.lease == c.s.api.leases[m.name] {
		c.lost = strconv.Itoa(c.s.api.backup.version)
	}
	c.goOn()
}

// goOn has the watches of a process that hung go on when it does, each from where it ended, if the API server has got
// as far.
func (c *client) goOn() {
	switch {
	case c.source == nil:
		return
	case c.process.hangs > 0 || c.process.cut:
		c.s.after(50*time.Millisecond, c.goOn)
		return
	}
	missed := c.missed
	c.ended, c.missed = false, nil
	for _, k := range c.kinds {
		seen := c.source.LatestOf(k)
		if seen == "" || kube.Older(strconv.Itoa(c.s.api.version), seen) ||
			c.lost != "" && kube.Older(c.lost, seen) {
			c.resume(k)
			continue
		}
		if !slices.Contains(restored, k.Writing().Plural) { // what was under way is in the new history, too
			c.s.at(c.arrival(k), func() { c.list(k) })
			continue
		}
		for _, n := range missed {
			isNew := n.object == nil || kube.Older(seen, n.object.GetResourceVersion())
			if isNew && watchName(n.kind) == watchName(k) {
				c.told(n)
			}
		}
		c.told(news{kind: k, version: strconv.Itoa(c.s.api.version)})
	}
}

// resume has the watch of a kind go on once the API server is back. The process asks it first how far it is, which is
// known sooner than the list that follows is there.
func (c *client) resume(k kube.Kind) {
	lists, asked := c.arrival(k), c.s.now.Add(c.s.within(resuming, c.name+" resumes "+watchName(k)))
	if asked.After(lists) {
		asked = lists
	}
	c.s.at(asked, func() { c.findForked(k) })
	c.s.at(lists, func() { c.list(k) })
}

// resuming is how long a process takes to ask at most.
const resuming = 300 * time.Millisecond

func (c *client) findForked(k kube.Kind) {
	if c.source != nil && !c.process.cut && c.lists[watchName(k)] > 0 {
		c.source.MarkForked(k)
	}
}
