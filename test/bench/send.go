package main

import (
	"encoding/binary"
	"fmt"
	"net"
	"time"
)

// every is the distance of packets: a figure that ends with a packet is at most so much too long.
const every = 2 * time.Millisecond

// send sends numbered datagrams to an address for ever; it is this program's part inside a pod.
func send(args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("send: want one HOST:PORT")
	}
	c, err := net.Dial("udp", args[0])
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
