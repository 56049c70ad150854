package world

import "github.com/egret-net/egret/internal/ref"

// keepKinds lists the kinds of objects that a world keeps in tables.
func (w *World) keepKinds() {
	w.namespaces = Keep(w, Spec[Namespace]{One: KindNamespace, Object: ref.Namespace,
		Key: (*Namespace).Key, Same: (*Namespace).sameNamespace, Changed: w.namespaceChanged})
	w.pods = Keep(w, Spec[Pod]{One: KindPod, All: KindPods, Object: ref.Pod,
		Key: (*Pod).Key, Same: (*Pod).sameState, Changed: w.podChanged})
	keepAttachments(w)
	w.services = Keep(w, Spec[Service]{One: KindService, All: KindServices, Object: ref.Service,
		Key: (*Service).Key, Same: (*Service).sameSpec, Changed: w.serviceChanged, Decides: decidesService()})
	w.egressIPs = Keep(w, Spec[EgressIP]{One: KindEgressIP, All: KindEgressIPs, Object: ref.EgressIP,
		Key: (*EgressIP).Key, Same: (*EgressIP).sameSpec, Changed: w.egressIPChanged, Decides: decidesEgressIP()})
	w.egressServices = Keep(w, Spec[EgressService]{One: KindEgressService, All: KindEgressServices,
		Object: ref.EgressService, Key: (*EgressService).Key, Same: (*EgressService).sameSpec,
		Changed: w.egressServiceChanged, Decides: decidesEgressService()})
	w.traffic = Keep(w, Spec[Traffic]{One: KindTraffic, All: KindTraffics, Object: ref.EgressIPTraffic,
		Key: (*Traffic).Key, Same: (*Traffic).sameTraffic, Changed: w.trafficChanged})
	w.networks = Keep(w, Spec[Network]{One: KindNetwork, All: KindNetworks, Object: ref.LogicalNetwork,
		Key: (*Network).Key, Same: (*Network).sameNetwork, Changed: w.networkChanged})
	Keep(w, Spec[Node]{One: KindNode, Object: ref.Node, Key: (*Node).Key,
		NotesAll: true, Changed: w.nodeChanged, Decides: decidesNode()})
}

// keepDerivedTables lists what a world computes from these when somebody reads it.
func (w *World) keepDerivedTables() {
	w.derived = nil
	w.activity, w.overlap = keepDerived(w, derivesActivity()), keepDerived(w, derivesOverlap())
	w.overclaim, w.primary = keepDerived(w, derivesOverclaim()), keepDerived(w, derivesPrimary())
}

func keepAttachments(w *World) {
	w.attachments = Keep(w, Spec[Attachment]{One: KindAttachment, All: KindAttachments, Object: ref.Pod,
		Key: (*Attachment).Key, Changed: w.attachmentChanged})
}
