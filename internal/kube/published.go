package kube

import (
	"crypto/sha256"

	v1 "github.com/egret-net/egret/api/v1"
	"github.com/egret-net/egret/internal/ref"
)

// agentAnnotations are the keys of HostAnnotations.
func agentAnnotations() []string {
	return []string{v1.AnnotationZoneName, v1.AnnotationNodeChassisID, v1.AnnotationNodePrimaryIfaddr,
		v1.AnnotationHostCIDRs,
		v1.AnnotationL3GatewayConfig, v1.AnnotationNodeMgmtPortMACAddresses}
}

// Published stands for the texts of those annotations that a node's agent writes: texts that differ in anything, or are
// not there, have another. Entries of other networks do not count.
func Published(annotations map[string]string) [32]byte {
	own := map[string]string{}
	for _, key := range agentAnnotations() {
		if text, there := annotations[key]; there {
			own[key] = defaultsOf(text)
		}
	}
	return sha256.Sum256([]byte(toJSON(own))) // in order of keys
}

// defaultsOf is what an annotation says of the default network, or all of it where it has no such key.
func defaultsOf(text string) string {
	if own, there := networksByName(text)[ref.DefaultNetwork]; there {
		return string(own)
	}
	return text
}
