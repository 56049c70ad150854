package kube

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/egret-net/egret/internal/world"
)

// How much of what a node says of itself is read. A process with a node's credentials can write as much as the API
// server takes (256 KiB of annotations, 1.5 MiB an object), and each part of it may become a row of every other node.
const (
	// maxHostCIDRs is far more than the addresses of a host's network interfaces; HostAnnotations publishes no more.
	maxHostCIDRs = 64
	// maxInternalIPs is far more than the one a family that a kubelet tells, and what a cloud provider adds. A status
	// has room for 40,000.
	maxInternalIPs = 16
	// maxSubnets is more than the one a family that a node has.
	maxSubnets = 8
	// maxGateways are next hops of default routes: one a family, and more with several uplinks.
	maxGateways = 8
	// maxRecorded is more than the one a family that a node has on its primary network.
	maxRecorded = 8
	// maxPodIPs is more than the one a family that a pod has.
	maxPodIPs = 8
	// maxHeld is far more egress IPs than one node can have on a link.
	maxHeld = 8192
	// maxUID is the length of a UID.
	maxUID       = 36
	maxConflicts = 256
	maxProblems  = 256
	// maxNetworks of an EgressIPTraffic; the CRD has the same.
	maxNetworks = 10000
	// maxTrafficProblems are enough to mend an EgressIPTraffic by.
	maxTrafficProblems = 8
	// maxText, in runes, of each problem.
	maxText = 256
)

// plainText is a text of somebody else's that people will read.
func plainText(text string) string { return world.Plain(text, maxText) }

// isName says whether a text can be the name of a Node or an EgressIP (DNS-1123 subdomain).
func isName(s string) bool { return len(validation.IsDNS1123Subdomain(s)) == 0 }

// isKey says whether a text can be the key of an object: a name, or a namespace and a name.
func isKey(s string) bool {
	namespace, name, namespaced := strings.Cut(s, "/")
	return isName(namespace) && (!namespaced || isName(name))
}

// atMost is the start of a list, and an error if that is not all.
func atMost[T any](list []T, n int) ([]T, error) {
	if len(list) <= n {
		return list, nil
	}
	return list[:n], fmt.Errorf("%d entries, of which the first %d are read", len(list), n)
}
