package trace

import (
	"net/netip"
	"slices"
	"strings"
)

// balance is the load balancers of the node switch. It takes the first backend: which one does not matter to a source address.
func (w walker) balance() (walker, string) {
	vip := netip.AddrPortFrom(w.p.Dst, w.p.DstPort).String()
	for id, row := range w.zone().state.NB.Rows() {
		vips, _ := row.Cols["vips"].(map[string]string)
		backends, found := vips[vip]
		if id.Table != "Load_Balancer" || !found || row.Cols["protocol"] != w.p.Proto {
			continue
		}
		list := strings.Split(backends, ",")
		slices.Sort(list)
		to, err := netip.ParseAddrPort(list[0])
		if err != nil {
			return w, "rejected: " + id.Name + " has no backends"
		}
		w.p.Dst, w.p.DstPort = to.Addr(), to.Port()
		return w.step("%s balances to %s", id.Name, to), ""
	}
	return w, ""
}
