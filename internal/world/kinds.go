package world

// keepKinds lists the kinds of objects that a world keeps in tables.
func (w *World) keepKinds() {
	w.namespaces = Keep(w, Spec[Namespace]{One: KindNamespace, Key: (*Namespace).Key, Same: (*Namespace).same,
		Changed: w.namespaceChanged})
	w.pods = Keep(w, Spec[Pod]{One: KindPod, All: KindPods, Key: (*Pod).Key, Same: (*Pod).same, Changed: w.podChanged})
	w.attachments = Keep(w, Spec[Attachment]{One: KindAttachment, All: KindAttachments, Key: (*Attachment).Key})
	w.services = Keep(w, Spec[Service]{One: KindService, All: KindServices, Key: (*Service).Key,
		Changed: w.serviceChanged, Decides: decidesService()})
	w.egressIPs = Keep(w, Spec[EgressIP]{One: KindEgressIP, All: KindEgressIPs, Key: (*EgressIP).Key,
		Same: (*EgressIP).same, Changed: w.egressIPChanged, Decides: decidesEgressIP()})
	Keep(w, Spec[Node]{One: KindNode, Key: (*Node).Key, TouchesAll: true, Changed: w.nodeChanged,
		Decides: decidesNode()})
}
