package simulate

import (
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/egret-net/egret/internal/kube"
)

// backup is what etcd held at a time.
type backup struct {
	version int
	objects map[string]map[string]object
}

// restored are the kinds that a restore brings back. What kubelets and people would put right of pods and nodes they
// have by then: these are as they were before, in versions of the new history.
var restored = []string{"egressips", "egressiptraffics", "egressnodes", "egressservices", "namespaces",
	"services"}

// othersWrite is how many versions what is not simulated takes after a backup: Leases, Events. Bookmarks bring them. Of
// two objects that have one version in two histories nobody knows that they differ.
const othersWrite = 100

func (a *api) backUp() {
	a.backup = &backup{a.version, map[string]map[string]object{}}
	for _, plural := range restored {
		a.backup.objects[plural] = maps.Clone(a.objects[plural]) // what is stored is never changed
	}
	a.version += othersWrite
	a.sendBookmarks()
}

// restore has history go back to the backup. All watches end, and what is there is listed.
func (a *api) restore() {
	if a.backup == nil {
		return
	}
	a.version, a.reportsLost, a.forked = a.backup.version, true, a.s.now
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
	for _, plural := range []string{"nodes", "pods"} {
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
		for _, k := range c.kinds {
			c.resume(k)
		}
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
