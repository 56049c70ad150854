package route

import (
	"fmt"
	"math"
	"net/netip"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"github.com/egret-net/egret/internal/plan"
)

// addrSocket reads and writes addresses with all that marks them as ours. The netlink library knows IFA_PROTO alone,
// which kernels before 5.18 neither keep nor show.
type addrSocket map[int]*nl.SocketHandle

func openAddrSocket() (addrSocket, error) {
	s, err := nl.Subscribe(unix.NETLINK_ROUTE)
	if err != nil {
		return nil, fmt.Errorf("open a netlink socket for addresses: %w", err)
	}
	limit := unix.NsecToTimeval(answerTime.Nanoseconds())
	if err := s.SetReceiveTimeout(&limit); err != nil {
		s.Close()
		return nil, fmt.Errorf("give a netlink socket a deadline: %w", err)
	}
	return addrSocket{unix.NETLINK_ROUTE: {Socket: s}}, nil
}

func (s addrSocket) closeSocket() { s[unix.NETLINK_ROUTE].Close() }

func (s addrSocket) newRequest(kind, flags int) *nl.NetlinkRequest {
	r := nl.NewNetlinkRequest(kind, flags)
	r.Sockets, r.RetryInterrupted = s, true
	return r
}

// kernelAddr is an address as the kernel shows it.
type kernelAddr struct {
	link     int // its index
	prefix   netip.Prefix
	scope    uint8
	flags    uint32 // IFA_F_*
	lifetime uint32 // preferred, in seconds
	protocol uint8  // IFA_PROTO
	metric   uint32 // IFA_RT_PRIORITY
}

func (a kernelAddr) isOurs() bool {
	return a.protocol == AddrProtocol || a.metric == AddrMetric
}

// isDeprecated: a permanent IPv4 address says so by its flag only; its lifetimes are shown as infinite.
func (a kernelAddr) isDeprecated() bool { return a.lifetime == 0 || a.flags&unix.IFA_F_DEPRECATED != 0 }

// listAddrs has the addresses of all links, in the kernel's order.
func (s addrSocket) listAddrs() ([]kernelAddr, error) {
	r := s.newRequest(unix.RTM_GETADDR, unix.NLM_F_DUMP)
	r.AddData(nl.NewIfAddrmsg(netlink.FAMILY_ALL))
	messages, err := r.Execute(unix.NETLINK_ROUTE, unix.RTM_NEWADDR)
	if err != nil {
		return nil, err
	}
	var all []kernelAddr
	for _, m := range messages {
		head := nl.DeserializeIfAddrmsg(m)
		attrs, err := nl.ParseRouteAttrAsMap(m[head.Len():])
		if err != nil {
			return nil, err
		}
		a := kernelAddr{link: int(head.Index), scope: head.Scope, flags: uint32(head.Flags)}
		if a.readAttributes(int(head.Prefixlen), func(kind uint16) []byte { return attrs[kind].Value }) {
			all = append(all, a)
		}
	}
	return all, nil
}

// readAttributes takes what attributes say; it returns false where there is no address among them. An address with a
// peer has the peer's prefix, and is its own address alone.
func (a *kernelAddr) readAttributes(bits int, value func(kind uint16) []byte) bool {
	ip, ok := netip.AddrFromSlice(value(unix.IFA_ADDRESS))
	if local, has := netip.AddrFromSlice(value(unix.IFA_LOCAL)); has && local != ip {
		ip, ok, bits = local, true, local.BitLen()
	}
	if v := value(unix.IFA_FLAGS); len(v) >= 4 {
		a.flags = nl.NativeEndian().Uint32(v)
	}
	if v := value(unix.IFA_CACHEINFO); len(v) >= unix.SizeofIfaCacheinfo {
		a.lifetime = nl.DeserializeIfaCacheInfo(v).Prefered
	}
	if v := value(netlink.IFA_PROTO); len(v) >= 1 {
		a.protocol = v[0]
	}
	if v := value(unix.IFA_RT_PRIORITY); len(v) >= 4 {
		a.metric = nl.NativeEndian().Uint32(v)
	}
	a.prefix = netip.PrefixFrom(ip, bits)
	return ok && a.prefix.IsValid()
}

// putAddr adds an address of ours to a link, or changes it when it is there.
func (s addrSocket) putAddr(link int, p netip.Prefix, spec plan.AddrSpec, there bool) error {
	how := unix.NLM_F_EXCL
	if there {
		how = unix.NLM_F_REPLACE
	}
	r := s.newRequest(unix.RTM_NEWADDR, unix.NLM_F_CREATE|how|unix.NLM_F_ACK)
	head := nl.NewIfAddrmsg(nl.GetIPFamily(p.Addr().AsSlice()))
	head.Index, head.Prefixlen = uint32(link), uint8(p.Bits())
	if spec.NoDAD && p.Addr().Is6() {
		head.Flags = unix.IFA_F_NODAD
	}
	r.AddData(head)
	for _, a := range addrAttributes(p, spec) {
		r.AddData(a)
	}
	_, err := r.Execute(unix.NETLINK_ROUTE, 0)
	return err
}

// addrAttributes of an address of ours. An IPv4 one has its subnet's last address for broadcast, unless that has but
// two (RFC 3021).
func addrAttributes(p netip.Prefix, spec plan.AddrSpec) []*nl.RtAttr {
	life := nl.IfaCacheInfo{IfaCacheinfo: unix.IfaCacheinfo{Valid: math.MaxUint32, Prefered: math.MaxUint32}}
	if spec.Deprecated {
		life.Prefered = 0
	}
	out := []*nl.RtAttr{
		nl.NewRtAttr(unix.IFA_LOCAL, p.Addr().AsSlice()), nl.NewRtAttr(unix.IFA_ADDRESS, p.Addr().AsSlice()),
		nl.NewRtAttr(unix.IFA_CACHEINFO, life.Serialize()), nl.NewRtAttr(netlink.IFA_PROTO, []byte{AddrProtocol}),
	}
	if n := toIPNet(p); p.Addr().Is4() && p.Bits() < 31 {
		for i := range n.IP {
			n.IP[i] |= ^n.Mask[i]
		}
		out = append(out, nl.NewRtAttr(unix.IFA_BROADCAST, n.IP))
	}
	if p.IsSingleIP() {
		out = append(out, nl.NewRtAttr(unix.IFA_RT_PRIORITY, nl.Uint32Attr(AddrMetric)))
	}
	return out
}
