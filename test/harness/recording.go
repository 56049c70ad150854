package harness

import (
	"maps"
	"slices"
	"strings"
)

// HostRecording is a script that prints what a host has that installing Egret may change. Tables of iptables without a
// rule do nothing, and stay. Of IPv6 the kernel lists the default route twice.
const HostRecording = `
ip -o link show | sed 's/^[0-9]*: //; s/@[^:]*//'
ip -o addr show | sed 's/^[0-9]*: //'
ip route show table all | sort; ip -6 route show table all | sort -u
ip rule show; ip -6 rule show
nft -s list tables | grep -v 'table ip6\? filter$'
iptables -S | grep -v '^-P [A-Z]* ACCEPT'; ip6tables -S | grep -v '^-P [A-Z]* ACCEPT'
sysctl -a 2>/dev/null | grep -E '^net\.ipv[46]\.(conf|ip_forward)' | sort
true
`

// FilesRecording prints names of files that are not Egret's, in folders where it has some.
const FilesRecording = `
ls -A /etc/cni/net.d /opt/cni/bin /run/openvswitch /run/ovn | grep -v -e egret-cni -e 10-egret.conflist
true
`

// MarksRecording prints which files a host has of Egret's, of OVN's, and of an Open vSwitch that Egret brought.
const MarksRecording = `
ls /etc/cni/net.d/10-egret.conflist /opt/cni/bin/egret-cni /run/egret/*.conf /run/egret/booted /run/egret/*i.sock \
	/run/egret/agent.sock 2>/dev/null
find /var/lib/ovn /var/lib/openvswitch -type f 2>/dev/null
true
`

// DifferingLines returns the lines that one of two texts has alone.
func DifferingLines(before, after string) string {
	lines := func(text string) map[string]bool {
		set := map[string]bool{}
		for line := range strings.Lines(text) {
			set[line] = true
		}
		return set
	}
	var out strings.Builder
	was, is := lines(before), lines(after)
	for _, line := range slices.Sorted(maps.Keys(was)) {
		if !is[line] {
			out.WriteString("- " + line)
		}
	}
	for _, line := range slices.Sorted(maps.Keys(is)) {
		if !was[line] {
			out.WriteString("+ " + line)
		}
	}
	return out.String()
}
