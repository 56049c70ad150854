package e2e

import (
	"net/netip"

	"k8s.io/apimachinery/pkg/util/intstr"
)

func intOrString(n int) intstr.IntOrString { return intstr.FromInt32(int32(n)) }

func parseAll(texts []string) []netip.Addr {
	var out []netip.Addr
	for _, t := range texts {
		out = append(out, netip.MustParseAddr(t))
	}
	return out
}

func texts(ips []netip.Addr) []string {
	var out []string
	for _, ip := range ips {
		out = append(out, ip.String())
	}
	return out
}
