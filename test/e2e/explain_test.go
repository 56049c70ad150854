package e2e

import (
	"context"
	"fmt"
	"net/netip"
	"strings"
	"time"

	"github.com/egret-net/egret/internal/world"
)

// explainTimeout bounds what is asked of a node after a failure, each question by itself.
const explainTimeout = 10 * time.Second

// explain is all that decides about a pod's packets to an endpoint, as it stands now: what Kubernetes says, what the
// pod's node holds, and the way of a first packet through its switch. It is for the log of a look that failed.
func (n *namespace) explain(pod string, to endpoint) string {
	var out strings.Builder
	for _, question := range n.questions(pod, to) {
		ctx, cancel := context.WithTimeout(context.Background(), explainTimeout)
		answer, err := n.c.feed(ctx, n.at[pod], nil, "sh", "-c", question)
		cancel()
		fmt.Fprintf(&out, "%s# %s\n%s", n.at[pod], question, answer)
		if err != nil {
			fmt.Fprintf(&out, "%v\n", err)
		}
	}
	return out.String()
}

func (n *namespace) questions(pod string, to endpoint) []string {
	q := []string{
		"ovn-nbctl lr-policy-list ovn_cluster_router; ovn-nbctl lr-nat-list GR_" + n.at[pod],
		"ovn-nbctl --no-headings --format=csv --columns=external_ids,addresses find Address_Set; ovn-nbctl " +
			"--columns=nb_cfg,sb_cfg,hv_cfg list NB_Global",
		"ip rule; ip route show table all | grep -v 'table local'; ip neigh; nft list table inet egret",
		"grep -v level=DEBUG /var/log/egret/egret-node.log | tail -40",
	}
	for i, ip := range n.ips[pod] {
		if i < len(to.ips) {
			q = append(q, "ovs-appctl dpctl/dump-flows | grep -F "+ip.String(),
				"ovs-appctl dpctl/dump-conntrack | grep -F "+ip.String(), n.trace(pod, ip, to.ips[i], to.port))
		}
	}
	return q
}

// trace follows a SYN of the pod.
func (n *namespace) trace(pod string, from, to netip.Addr, port int) string {
	protocol, source, destination := "tcp", "nw_src", "nw_dst"
	if from.Is6() {
		protocol, source, destination = "tcp6", "ipv6_src", "ipv6_dst"
	}
	first, bits := n.ips[pod][0], 24
	if first.Is6() {
		bits = 64
	}
	router := world.MAC(world.Nth(netip.PrefixFrom(first, bits), 1))
	return fmt.Sprintf("ovs-appctl ofproto/trace br-int in_port=$(ovs-vsctl --bare --columns=ofport find Interface "+
		"external_ids:iface-id=%s_%s),"+
		"%s,dl_src=%s,dl_dst=%s,%s=%s,%s=%s,nw_ttl=64,tcp_src=40000,tcp_dst=%d,tcp_flags=syn",
		n.name, pod, protocol, world.MAC(first), router, source, from, destination, to, port)
}
