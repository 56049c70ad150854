package network

import (
	"fmt"
	"slices"

	"github.com/egret-net/egret/internal/decide"
	"github.com/egret-net/egret/internal/networks"
	"github.com/egret-net/egret/internal/ref"
	"github.com/egret-net/egret/internal/world"
)

// judgeRequests goes through the requests, the oldest first, and says which definitions each needs.
func (c *situation) judgeRequests() {
	for _, r := range c.requests {
		switch {
		case r.Deleting:
			c.noteDeleting(r)
		case r.Unserved != "":
			c.note(r, ReasonNetworkUnsupported, r.Unserved)
		case r.Problem != "":
			c.note(r, syncReason(r), r.Problem)
		default:
			c.judgeRequest(r)
		}
	}
}

func (c *situation) judgeRequest(r *networks.Request) {
	text := checkConfig(c.view.Config, r.Config)
	if text != "" {
		c.note(r, syncReason(r), text)
	}
	for _, ns := range c.selected[r] {
		if text == "" {
			c.define(r, ns)
		}
	}
	for _, d := range c.madeFor[r] {
		if !c.wants(r, d.Namespace) && c.isUsed(d) {
			c.note(r, syncReason(r), fmt.Sprintf("namespace %s is not selected any more, and pod %s is in the network: "+
				"it goes with the last pod", d.Namespace, c.user(d.Namespace)))
		}
	}
}

// define has a request's network be that of a namespace, or says why it cannot.
func (c *situation) define(r *networks.Request, namespace string) {
	key := namespace + "/" + r.Name
	have := c.shown[key]
	switch ns := c.view.Namespace(namespace); {
	case ns == nil || have == nil && ns.Terminating:
		return // it will be known, or gone
	case have != nil && c.requestOf(have) != r && !c.isOrphan(have):
		c.note(r, syncReason(r), fmt.Sprintf("%s %s is somebody else's: rename one of the two",
			ref.NetworkAttachmentDefinition, key))
		return
	case have != nil && (have.Deleting || c.isOrphan(have) && !have.Config.Equal(r.Config)):
		c.note(r, ReasonDefinitionDeleted, fmt.Sprintf("%s %s is of a former network of that name: it goes with the last "+
			"pod of the namespace, and then another is made", ref.NetworkAttachmentDefinition, key))
		return
	case c.isOthers(namespace, key):
		c.note(r, syncReason(r), fmt.Sprintf("primary network already exists in namespace %s: %s", namespace,
			c.primary[namespace].Config.Name))
		return
	case !ns.OwnNetwork:
		c.note(r, syncReason(r), unlabelled(namespace))
		return
	case c.isNamed(r):
		c.note(r, syncReason(r), fmt.Sprintf("%s %s has the name %s already: rename one of the two",
			ref.NetworkAttachmentDefinition, c.first[r.Config.Name].Key(), r.Config.Name))
		return
	}
	d := &networks.Definition{Namespace: namespace, Name: r.Name, Served: true}
	if have != nil {
		copied := *have
		d = &copied
	}
	d.Owner, d.Labelled, d.Config = networks.Owner{Kind: objectOf(r), Name: r.Name, UID: r.UID}, true, r.Config
	d.Protected, d.Unwanted = true, false
	c.give(d)
	if c.numbers[r.Config.Name] == 0 {
		c.note(r, syncReason(r), fmt.Sprintf("no number up to %d is free: delete networks that are not used",
			world.MaxNetworkID))
	}
}

// isNamed says whether the network of a request's name is an administrator's.
func (c *situation) isNamed(r *networks.Request) bool {
	first := c.first[r.Config.Name]
	return first != nil && !first.Labelled
}

// holds says whether a request must stay for a definition of its. One with a finalizer of somebody else holds nothing.
func (c *situation) holds(r *networks.Request) bool {
	return slices.ContainsFunc(c.madeFor[r], func(d *networks.Definition) bool { return d.Protected || !d.Deleting })
}

// isOrphan says whether a definition was made for a request that is gone.
func (c *situation) isOrphan(d *networks.Definition) bool { return d.Labelled && c.requestOf(d) == nil }

// noteDeleting says what a request that is being deleted waits for.
func (c *situation) noteDeleting(r *networks.Request) {
	for _, d := range c.madeFor[r] {
		text := ref.NetworkAttachmentDefinition + " " + d.Key() + " is being deleted"
		if pod := c.user(d.Namespace); pod != "" && d.Counts() {
			text = fmt.Sprintf("pod %s is in the network: it is deleted when the last pod is gone", pod)
		}
		c.note(r, ReasonDefinitionDeleted, text)
	}
}

func syncReason(r *networks.Request) string {
	if r.IsCluster() {
		return ReasonDefinitionSyncError
	}
	return ReasonSyncError
}

func (c *situation) note(r *networks.Request, reason, text string) {
	c.problems[r] = append(c.problems[r], decide.Notice{
		Finding: decide.Finding{Kind: reasonRefused, Reason: reason, Detail: text}, Event: reasonRefused,
		Message: text})
}

// isMade says whether the API shows all definitions that a request needs, with their numbers.
func (c *situation) isMade(r *networks.Request) bool {
	return !slices.ContainsFunc(c.selected[r], func(ns string) bool {
		d := c.shown[ns+"/"+r.Name]
		return d == nil || !d.Counts()
	})
}

// createdText says of a request that has its network where it has it.
func (c *situation) createdText(r *networks.Request) string {
	if !r.IsCluster() {
		return "the network is that of the namespace's pods"
	}
	if len(c.selected[r]) == 0 {
		return "no namespace is selected"
	}
	return "the network is that of pods in namespaces " + decide.Some(c.selected[r])
}
