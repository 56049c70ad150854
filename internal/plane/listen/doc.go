// Package listen receives what other machines say of addresses that this node answers for: that they have them.
//
// In: the addresses to watch, with the hardware address that answers for each, and the devices to listen on. Out:
// Claims, one for each ARP packet whose sender address is one of them (RFC 5227 2.4), and for each neighbor
// advertisement for one (RFC 4862 5.4.4), if it names another hardware address. One packet socket a device, with a
// filter in the kernel, serves any number of addresses. Nothing is written: internal/plane/announce does that.
package listen
