package route

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"syscall"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"github.com/egret-net/egret/internal/plan"
)

// Change is what the kernel told of, one or several changes.
type Change struct {
	// Taken: something may be gone that was ours, by whomever.
	Taken bool
}

// Watch tells whenever links, addresses, routes, rules or links' settings (forwarding, rp_filter) of the calling
// thread's network namespace change; not of rules that we add or change, nor of routes, but for those of links' tables.
// Changes that nobody has taken yet are one. The channel is closed when ctx ends, or when the kernel's messages can no
// longer be read.
func Watch(ctx context.Context) (<-chan Change, error) {
	s, err := nl.Subscribe(unix.NETLINK_ROUTE, unix.RTNLGRP_LINK,
		unix.RTNLGRP_IPV4_IFADDR, unix.RTNLGRP_IPV4_ROUTE, unix.RTNLGRP_IPV4_RULE, unix.RTNLGRP_IPV4_NETCONF,
		unix.RTNLGRP_IPV6_IFADDR, unix.RTNLGRP_IPV6_ROUTE, unix.RTNLGRP_IPV6_RULE, unix.RTNLGRP_IPV6_NETCONF)
	if err != nil {
		return nil, fmt.Errorf("subscribe to the kernel's network changes: %w", err)
	}
	changed := make(chan Change, 1)
	stop := context.AfterFunc(ctx, func() { s.Close() })
	go func() {
		defer close(changed)
		defer stop()
		for {
			messages, _, err := s.Receive()
			lost := errors.Is(err, unix.ENOBUFS)
			if err != nil && !lost {
				return
			}
			if lost || !allMessages(messages, isOwnAddition) {
				sendChange(changed, Change{Taken: lost || slices.ContainsFunc(messages, takesOurs)})
			}
		}
	}()
	return changed, nil
}

// isOwnAddition says whether a message only says that we added something that no fact of the world tells of.
func isOwnAddition(m syscall.NetlinkMessage) bool {
	if !addsOurs(m) || m.Header.Type == unix.RTM_NEWRULE {
		return addsOurs(m)
	}
	k, ok := routeOf(m.Data)
	return ok && (k.Table == plan.MainTable || k.Table == plan.ReplyTable)
}

func allMessages(messages []syscall.NetlinkMessage, such func(syscall.NetlinkMessage) bool) bool {
	return !slices.ContainsFunc(messages, func(m syscall.NetlinkMessage) bool { return !such(m) })
}

// sendChange adds to what nobody has taken yet. It alone sends.
func sendChange(to chan Change, c Change) {
	select {
	case before := <-to:
		c.Taken = c.Taken || before.Taken
	default:
	}
	to <- c
}
