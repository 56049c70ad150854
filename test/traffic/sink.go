package traffic

import (
	"errors"
	"net"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"github.com/egret-net/egret/internal/sandbox"
)

// Port is the UDP port of hosts outside that senders send to.
const Port = 9999

// freed is how long a port that was closed may be in use: a process that is being started has this one's sockets, too,
// from fork to exec.
const freed = 5 * time.Second

// Swallow takes datagrams on Port inside a network namespace until close, so that nobody answers them with ICMP.
func Swallow(namespace string) (close func(), err error) {
	var socket net.PacketConn
	for end := time.Now().Add(freed); ; time.Sleep(freed / 100) {
		err = sandbox.InNetns(namespace, func() (err error) {
			socket, err = net.ListenPacket("udp", net.JoinHostPort("", strconv.Itoa(Port)))
			return err
		})
		if !errors.Is(err, unix.EADDRINUSE) || time.Now().After(end) {
			break
		}
	}
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
