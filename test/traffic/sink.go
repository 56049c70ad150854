package traffic

import (
	"net"
	"strconv"

	"github.com/egret-net/egret/internal/sandbox"
)

// Port is the UDP port of hosts outside that senders send to.
const Port = 9999

// Swallow takes datagrams on Port inside a network namespace until close, so that nobody answers them with ICMP.
func Swallow(namespace string) (close func(), err error) {
	var socket net.PacketConn
	err = sandbox.InNetns(namespace, func() (err error) {
		socket, err = net.ListenPacket("udp", net.JoinHostPort("", strconv.Itoa(Port)))
		return err
	})
	if err != nil {
		return nil, err
	}
	go func() {
		for buffer := make([]byte, 2048); ; {
			if _, _, err := socket.ReadFrom(buffer); err != nil {
				return
			}
		}
	}()
	return func() { _ = socket.Close() }, nil
}
