package route

import (
	"context"
	"errors"
	"fmt"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// Watch signals whenever links, addresses, routes, rules or links' settings (forwarding, rp_filter) of the calling
// thread's network namespace change, by whomever; our own changes too. Signals that nobody has taken yet are one. The
// channel is closed when ctx ends, or when the kernel's messages can no longer be read.
func Watch(ctx context.Context) (<-chan struct{}, error) {
	s, err := nl.Subscribe(unix.NETLINK_ROUTE, unix.RTNLGRP_LINK,
		unix.RTNLGRP_IPV4_IFADDR, unix.RTNLGRP_IPV4_ROUTE, unix.RTNLGRP_IPV4_RULE, unix.RTNLGRP_IPV4_NETCONF,
		unix.RTNLGRP_IPV6_IFADDR, unix.RTNLGRP_IPV6_ROUTE, unix.RTNLGRP_IPV6_RULE, unix.RTNLGRP_IPV6_NETCONF)
	if err != nil {
		return nil, fmt.Errorf("subscribe to the kernel's network changes: %w", err)
	}
	changed := make(chan struct{}, 1)
	stop := context.AfterFunc(ctx, func() { s.Close() })
	go func() {
		defer close(changed)
		defer stop()
		for {
			// ENOBUFS: messages were lost, so that something changed.
			if _, _, err := s.Receive(); err != nil && !errors.Is(err, unix.ENOBUFS) {
				return
			}
			select {
			case changed <- struct{}{}:
			default:
			}
		}
	}()
	return changed, nil
}
