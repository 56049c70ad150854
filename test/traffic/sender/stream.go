package main

import (
	"encoding/binary"
	"net"
	"time"
)

// every is the distance of packets: a figure that ends with a packet is at most so much too long.
const every = 2 * time.Millisecond

// stream sends numbered datagrams to an address for ever.
func stream(to string) error {
	c, err := net.Dial("udp", to)
	if err != nil {
		return err
	}
	number := uint64(0)
	for range time.Tick(every) {
		// An ICMP error for an earlier datagram comes back as the error of this one; the stream goes on.
		_, _ = c.Write(binary.BigEndian.AppendUint64(nil, number))
		number++
	}
	return nil
}
