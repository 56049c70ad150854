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
			c.noteProblem(r, ReasonNetworkUnsupported, r.Unserved)
		case r.Problem != "":
			c.noteProblem(r, syncReason(r), r.Problem)
		default:
			c.judgeRequest(r)
		}
	}
}

func (c *situation) judgeRequest(r *networks.Request) {
	text := checkConfig(c.view.Config, r.Config)
	if text != "" {
		c.noteProblem(r, syncReason(r), text)
	}
	for _, ns := range c.selected[r] {
		if text == "" {
			c.defineNetwork(r, ns)
		}
	}
	for _, d := range c.madeFor[r] {
		if !c.wants(r, d.Namespace) && c.isUsed(d) {
			c.noteProblem(r, syncReason(r), fmt.Sprintf("namespace %s is not selected any more, and pod %s is in the network: "+
				"it goes with the last pod", d.Namespace, c.podIn(d.Namespace)))
		}
	}
}

// defineNetwork makes a request's network the network of a namespace, or notes why it cannot.
func (c *situation) defineNetwork(r *networks.Request, namespace string) {
	have, ns := c.shown[namespace+"/"+r.Name], c.view.Namespace(namespace)
	if ns == nil || have == nil && ns.Terminating {
		return // it will be known, or gone
	}
	if reason, text := c.whyUndefined(r, ns, have); text != "" {
		c.noteProblem(r, reason, text)
		return
	}
	d := &networks.Definition{Namespace: namespace, Name: r.Name, Served: true}
	if have != nil {
		copied := *have
		d = &copied
	}
	d.Owner, d.Labelled, d.Config = networks.Owner{Kind: objectOf(r), Name: r.Name, UID: r.UID}, true, r.Config
	d.Protected, d.Unwanted = true, false
	if c.giveNumber(d); d.Number.ID == 0 {
		c.noteProblem(r, syncReason(r), noNumber())
	}
}

// whyUndefined returns why a request's network cannot be the network of a namespace; "" if it can. have is the
// definition of the request's name there, or nil.
func (c *situation) whyUndefined(r *networks.Request, ns *world.Namespace,
	have *networks.Definition) (reason, text string) {
	key := ns.Name + "/" + r.Name
	switch {
	case have != nil && c.requestOf(have) != r && !c.isOrphan(have):
		text = fmt.Sprintf("%s %s is somebody else's: rename one of the two", ref.NetworkAttachmentDefinition, key)
	case have != nil && have.Deleting:
		return ReasonDefinitionDeleted, fmt.Sprintf("%s %s is being deleted: it goes with the last pod of the "+
			"namespace, and then another is made", ref.NetworkAttachmentDefinition, key)
	case have != nil && c.isOrphan(have) && !have.Config.Equal(r.Config):
		return ReasonDefinitionDeleted, fmt.Sprintf("%s %s is of a former network of that name: it goes with the last "+
			"pod of the namespace, and then another is made", ref.NetworkAttachmentDefinition, key)
	case c.isOthers(ns.Name, key):
		text = fmt.Sprintf("primary network already exists in namespace %s: %s", ns.Name,
			c.primary[ns.Name].Config.Name)
	case !ns.OwnNetwork:
		text = unlabelled(ns.Name)
	case c.isNameTaken(r):
		text = fmt.Sprintf("%s %s has the name %s already: rename one of the two", ref.NetworkAttachmentDefinition,
			c.first[r.Config.Name].Key(), r.Config.Name)
	}
	return syncReason(r), text
}

func noNumber() string {
	return fmt.Sprintf("no number up to %d is free: delete networks that are not used", world.MaxNetworkID)
}

// isNameTaken says whether an administrator's network has the name of a request's network.
func (c *situation) isNameTaken(r *networks.Request) bool {
	first := c.first[r.Config.Name]
	return first != nil && !first.Labelled
}

// isHeld says whether a request must stay because of its definitions. A deleted definition that stays only for somebody
// else's finalizer does not count.
func (c *situation) isHeld(r *networks.Request) bool {
	return slices.ContainsFunc(c.madeFor[r], func(d *networks.Definition) bool { return d.Protected || !d.Deleting })
}

// isOrphan says whether a definition was made for a request that is gone.
func (c *situation) isOrphan(d *networks.Definition) bool { return d.Labelled && c.requestOf(d) == nil }

// noteDeleting says what a request that is being deleted waits for.
func (c *situation) noteDeleting(r *networks.Request) {
	for _, d := range c.madeFor[r] {
		text := ref.NetworkAttachmentDefinition + " " + d.Key() + " is being deleted"
		if pod := c.podIn(d.Namespace); pod != "" && d.Counts() {
			text = fmt.Sprintf("pod %s is in the network: it is deleted when the last pod is gone", pod)
		}
		c.noteProblem(r, ReasonDefinitionDeleted, text)
	}
}

func syncReason(r *networks.Request) string {
	if r.IsCluster() {
		return ReasonDefinitionSyncError
	}
	return ReasonSyncError
}

func (c *situation) noteProblem(r *networks.Request, reason, text string) {
	c.problems[r] = append(c.problems[r], decide.Notice{
		Finding: decide.Finding{Kind: reasonRefused, Reason: reason, Detail: text}, Event: reasonRefused,
		Message: text})
}

// isMade says whether all definitions that a request needs exist, and have their numbers by what was decided.
func (c *situation) isMade(r *networks.Request) bool {
	return !slices.ContainsFunc(c.selected[r], func(ns string) bool {
		d := c.shown[ns+"/"+r.Name]
		return d == nil || !d.Counts()
	})
}

// createdText returns the message of a request whose network is made: in which namespaces it is.
func (c *situation) createdText(r *networks.Request) string {
	if !r.IsCluster() {
		return "the network is that of the namespace's pods"
	}
	if len(c.selected[r]) == 0 {
		return "no namespace is selected"
	}
	return "the network is that of pods in namespaces " + decide.Some(c.selected[r])
}
