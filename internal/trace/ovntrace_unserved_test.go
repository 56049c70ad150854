package trace_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/egret-net/egret/internal/compile/compiletest"
	"github.com/egret-net/egret/internal/world"
)

// TestUnservedAgreesWithOVN: OVN answers what a pod or a host sends to an address in the ranges of cluster IPs that no
// Service has. It drops in silence what must not be answered: errors of ICMP, and all but the first fragment.
func TestUnservedAgreesWithOVN(t *testing.T) {
	a := servicesIn(t, world.LocalGateway)
	pod := podEntrance(compiletest.Pod(3, "n1"))
	for f := range world.Family(2) {
		echo := [...]string{"icmp4.type==8", "icmp6.type==128"}[f]
		failure := [...]string{"icmp4.type==3", "icmp6.type==1"}[f]
		a.unserved(t, hostEntrance(), f, "tcp && tcp.dst==81", "answered")
		for packet, want := range map[string]string{
			"tcp && tcp.dst==81": "answered", "udp && udp.dst==81": "answered", "sctp && sctp.dst==81": "answered",
			echo: "answered", failure: "dropped", "udp && ip.later_frag": "dropped", "ip.proto==47": "dropped",
		} {
			a.unserved(t, pod, f, packet, want)
		}
	}
	a.quiet(t)
}

// unserved sends a packet to a cluster IP whose Service has nothing of the kind.
func (a *agreement) unserved(t *testing.T, in entrance, f world.Family, packet, want string) {
	t.Helper()
	microflow := fmt.Sprintf("inport==%q && eth.src==%s && eth.dst==%s && %s.src==%s && %s.dst==%s && ip.ttl==64 && %s",
		in.port, in.from, in.to, f.Match(), compiletest.PodIPs(3, 1)[f], f.Match(), clusterIPs[f], packet)
	text, err := a.zones["n1"].TraceOnce(t.Context(), in.datapath, microflow, "--ct=new", "--ct=new")
	if err != nil {
		t.Fatal(err)
	}
	have := "passed"
	switch {
	case rejects.MatchString(text):
		have = "answered"
	case !strings.Contains(text, "output"):
		have = "dropped"
	}
	if have != want {
		t.Errorf("from %s, %s: %s, want %s\n%s", in.port, packet, have, want, text)
	}
}
