package main

import "regexp"

// exclusion is a set of specs, by regular expression, and why they cannot run here.
type exclusion struct{ pattern, why string }

// cannotRun lists the specs of sig-network that are left out. What a spec itself finds missing is not here: it says so.
func cannotRun() []exclusion {
	return []exclusion{
		{`Netpol|NetworkPolicy|Network Policy`, "NetworkPolicy is no part of Egret"},
		{`should provide Internet connection|should provider Internet connection|\[Provider:GCE\]|Forward external name lookup|Forward PTR lookup`, "needs the Internet"},
		{`kube-proxy|KubeProxy|recreate its iptables rules`, "is about kube-proxy, which Egret stands in for"},
		{`sctp|SCTPConnectivity`, "needs SCTP in the kernel; make test-kernel has it"},
		{`handle large requests: udp|service endpoints using hostNetwork`,
			"needs fragments to be balanced, which OVS' userspace datapath cannot; make test-kernel has it"},
		{`iperf2|PerformanceDNS|IPerf2`, "measures, and decides nothing"},
		{`restarting apiserver`, "needs the API server in a pod"},
	}
}

// whyNot is why a spec cannot run here, or "".
func whyNot(name string) string {
	for _, e := range cannotRun() {
		if regexp.MustCompile(e.pattern).MatchString(name) {
			return e.why
		}
	}
	return ""
}
