package nft

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"syscall"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
	"sigs.k8s.io/knftables"

	"github.com/egret-net/egret/internal/plane"
)

// changes finds out that somebody else changed our tables, as `nft flush ruleset` does. The kernel's messages about a
// transaction are in the socket's queue, a new generation's as the last, before the nft command that asked for it has
// its answer: of what arrives while we write, one transaction is ours.
type changes struct {
	socket *os.File
	raw    syscall.RawConn
	told   chan struct{}
	others chan struct{} // signals changes of tables that are not ours

	mu      sync.Mutex
	buffer  [1 << 16]byte
	touched bool // the transaction whose messages are arriving changes one of our tables
	beside  bool // it changes one of others
	ours    bool // the next one that does is ours
	foreign bool // somebody else's did, or messages were lost
}

// changesQueue, in bytes, takes the kernel's messages about thousands of elements that come at once.
const changesQueue = 8 << 20

// openChanges listens from here on in the network namespace of the calling thread.
func openChanges() (*changes, error) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, unix.NETLINK_NETFILTER)
	if err != nil {
		return nil, fmt.Errorf("open a socket for nftables' changes: %w", err)
	}
	c := &changes{socket: os.NewFile(uintptr(fd), "nftables' changes"), told: make(chan struct{}, 1),
		others: make(chan struct{}, 1)}
	group := &unix.SockaddrNetlink{Family: unix.AF_NETLINK, Groups: 1 << (unix.NFNLGRP_NFTABLES - 1)}
	full := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, changesQueue)
	if err := errors.Join(full, unix.Bind(fd, group)); err != nil {
		c.socket.Close()
		return nil, fmt.Errorf("subscribe to nftables' changes: %w", err)
	}
	c.raw, err = c.socket.SyscallConn()
	return c, err
}

// watchOthers signals changes by others until ctx ends.
func (c *changes) watchOthers(ctx context.Context) <-chan struct{} {
	stop := context.AfterFunc(ctx, func() { c.socket.Close() })
	go func() {
		defer stop()
		_ = c.raw.Read(func(fd uintptr) bool { // until the socket is closed
			c.drainSocket(fd)
			return false
		})
	}()
	return c.told
}

// byUs writes a transaction of ours.
func (c *changes) byUs(write func() error) error {
	c.afterArrived(func() { c.ours = true })
	err := write()
	c.afterArrived(func() {
		c.foreign = c.foreign || err != nil && !c.ours // an object that was taken for ours was not
		c.ours = false
	})
	return err
}

// takeForeign says whether somebody else changed our tables since it was last asked.
func (c *changes) takeForeign() (foreign bool) {
	c.afterArrived(func() { foreign, c.foreign = c.foreign, false })
	return foreign
}

// afterArrived does something between what has arrived by now and what has not.
func (c *changes) afterArrived(do func()) {
	_ = c.raw.Control(c.drainSocket) // a closed socket tells nothing more
	c.mu.Lock()
	defer c.mu.Unlock()
	do()
}

// drainSocket takes in all messages that are there.
func (c *changes) drainSocket(fd uintptr) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for {
		n, _, err := unix.Recvfrom(int(fd), c.buffer[:], 0)
		switch {
		case errors.Is(err, unix.EINTR):
		case errors.Is(err, unix.ENOBUFS):
			c.signalForeign() // messages were lost
		case err != nil:
			return
		default:
			c.receiveMessages(c.buffer[:n])
		}
	}
}

// receiveMessages reads messages, each of which but a new generation's has its table as attribute 1, whatever it is
// about.
func (c *changes) receiveMessages(datagram []byte) {
	messages, err := syscall.ParseNetlinkMessage(datagram)
	if err != nil {
		c.signalForeign()
	}
	for _, m := range messages {
		if m.Header.Type == unix.NFNL_SUBSYS_NFTABLES<<8|unix.NFT_MSG_NEWGEN {
			c.endTransaction()
			continue
		}
		if len(m.Data) >= nl.SizeofNfgenmsg {
			ours := tableOf(m.Data[nl.SizeofNfgenmsg:]) == TableName
			c.touched, c.beside = c.touched || ours, c.beside || !ours
		}
	}
}

func tableOf(attributes []byte) string {
	parsed, err := nl.ParseRouteAttr(attributes)
	if err != nil || len(parsed) == 0 || parsed[0].Attr.Type != unix.NFTA_TABLE_NAME {
		return ""
	}
	return strings.TrimRight(string(parsed[0].Value), "\x00")
}

// endTransaction is the end of a transaction.
func (c *changes) endTransaction() {
	switch {
	case !c.touched:
	case c.ours:
		c.ours = false
	default:
		c.signalForeign()
	}
	if c.beside {
		plane.SignalOnce(c.others)
	}
	c.touched, c.beside = false, false
}

func (c *changes) signalForeign() {
	c.foreign = true
	plane.SignalOnce(c.told)
	plane.SignalOnce(c.others)
}

// watched is a table of which we know which changes are ours.
type watched struct {
	knftables.Interface
	changes *changes
}

// Run is part of knftables.Interface.
func (w watched) Run(ctx context.Context, tx *knftables.Transaction) error {
	return w.changes.byUs(func() error { return w.Interface.Run(ctx, tx) })
}
