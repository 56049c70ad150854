package world

import (
	"encoding/hex"
	"fmt"
	"strings"
)

// HardwareAddr is a unicast Ethernet address. As with netip.Addr, the zero value is no address.
type HardwareAddr struct{ octets [6]byte }

// groupBit of the first octet is set in addresses of groups (IEEE 802, 8.2.2).
const groupBit = 1

// ParseHardwareAddr reads "02:00:00:00:00:0a", in either case. It accepts no other notation, so that its String can
// stand wherever a text of a plan is made of other nodes' addresses.
func ParseHardwareAddr(s string) (HardwareAddr, error) {
	var a HardwareAddr
	parts := strings.Split(s, ":")
	if len(parts) != len(a.octets) {
		return HardwareAddr{}, notUnicast(s)
	}
	for i, p := range parts {
		b, err := hex.DecodeString(p)
		if err != nil || len(b) != 1 {
			return HardwareAddr{}, notUnicast(s)
		}
		a.octets[i] = b[0]
	}
	if !a.IsValid() || a.octets[0]&groupBit != 0 {
		return HardwareAddr{}, notUnicast(s)
	}
	return a, nil
}

func notUnicast(s string) error {
	return fmt.Errorf("%q is not a unicast hardware address such as 02:00:00:00:00:0a", s)
}

// IsValid says whether a is an address.
func (a HardwareAddr) IsValid() bool { return a != HardwareAddr{} }

// String is the address in lower case; "" of the zero value.
func (a HardwareAddr) String() string {
	if !a.IsValid() {
		return ""
	}
	o := a.octets
	return fmt.Sprintf("%02x:%02x:%02x:%02x:%02x:%02x", o[0], o[1], o[2], o[3], o[4], o[5])
}
