package sandbox

import (
	"fmt"
	"net/netip"
	"strings"

	"github.com/egret-net/egret/internal/sandbox/image"
)

// dnsManifests renders the cluster's DNS: CoreDNS and the Service kube-dns. It knows the cluster and nothing else:
// there is no network outside to ask.
func dnsManifests(l layout) string {
	return fmt.Sprintf(dnsTemplate, image.CoreDNS().Name, quoteAddresses(l.dnsIPs()[:1]), quoteAddresses(l.dnsIPs()),
		dnsFamilies(l.dnsIPs()))
}

func dnsFamilies(ips []netip.Addr) string {
	var families []string
	for _, ip := range ips {
		if ip.Is4() {
			families = append(families, "IPv4")
		} else {
			families = append(families, "IPv6")
		}
	}
	return strings.Join(families, ", ")
}

const dnsTemplate = `apiVersion: v1
kind: ServiceAccount
metadata: {name: coredns, namespace: kube-system}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: "system:coredns"}
rules:
- {apiGroups: [""], resources: [services, pods, namespaces], verbs: [list, watch]}
- {apiGroups: [discovery.k8s.io], resources: [endpointslices], verbs: [list, watch]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: "system:coredns"}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: "system:coredns"}
subjects:
- {kind: ServiceAccount, name: coredns, namespace: kube-system}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: coredns, namespace: kube-system}
data:
  Corefile: |
    .:53 {
        errors
        health {
            lameduck 1s
        }
        ready
        kubernetes cluster.local in-addr.arpa ip6.arpa {
            pods insecure
            ttl 5
        }
        cache 5
        reload
    }
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: coredns, namespace: kube-system, labels: {k8s-app: kube-dns}}
spec:
  replicas: 1
  selector: {matchLabels: {k8s-app: kube-dns}}
  template:
    metadata: {labels: {k8s-app: kube-dns}}
    spec:
      serviceAccountName: coredns
      priorityClassName: system-cluster-critical
      tolerations:
      - {key: node.kubernetes.io/not-ready, operator: Exists, effect: NoExecute, tolerationSeconds: 5}
      - {key: node.kubernetes.io/unreachable, operator: Exists, effect: NoExecute, tolerationSeconds: 5}
      dnsPolicy: Default
      containers:
      - name: coredns
        image: %[1]s
        imagePullPolicy: Never
        args: [-conf, /etc/coredns/Corefile]
        ports:
        - {name: dns, containerPort: 53, protocol: UDP}
        - {name: dns-tcp, containerPort: 53, protocol: TCP}
        readinessProbe: {httpGet: {path: /ready, port: 8181}, periodSeconds: 1}
        livenessProbe: {httpGet: {path: /health, port: 8080}, initialDelaySeconds: 30, failureThreshold: 5}
        volumeMounts:
        - {name: config, mountPath: /etc/coredns, readOnly: true}
      volumes:
      - {name: config, configMap: {name: coredns}}
---
apiVersion: v1
kind: Service
metadata: {name: kube-dns, namespace: kube-system, labels: {k8s-app: kube-dns, kubernetes.io/name: CoreDNS}}
spec:
  selector: {k8s-app: kube-dns}
  clusterIP: %[2]s
  clusterIPs: [%[3]s]
  ipFamilies: [%[4]s]
  ipFamilyPolicy: PreferDualStack
  ports:
  - {name: dns, port: 53, protocol: UDP}
  - {name: dns-tcp, port: 53, protocol: TCP}
`
