package route

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// kernel is the stack of a network namespace. Indexes and names of links are those of the last listing.
type kernel struct {
	netlink   *netlink.Handle
	addresses addrSocket
	sysctls   string
	index     map[string]int
	name      map[int]string
}

func (k *kernel) listLinks() (links, error) {
	list, err := k.netlink.LinkList()
	if err != nil {
		return nil, err
	}
	up := map[string]bool{}
	k.index, k.name = map[string]int{}, map[int]string{}
	for _, l := range list {
		a := l.Attrs()
		up[a.Name] = a.Flags&net.FlagUp != 0
		k.index[a.Name], k.name[a.Index] = a.Index, a.Name
	}
	return func(dev string) (bool, bool) {
		_, exists := up[dev]
		return up[dev], exists
	}, nil
}

func (k *kernel) linkByName(dev string) netlink.Link {
	return &netlink.Device{LinkAttrs: netlink.LinkAttrs{Name: dev, Index: k.index[dev]}}
}

// forgetAll is part of stack: nothing is remembered.
func (k *kernel) forgetAll() {}

func (k *kernel) setUp(dev string) error { return k.netlink.LinkSetUp(k.linkByName(dev)) }

func (k *kernel) readSysctl(key string) (string, error) {
	b, err := os.ReadFile(filepath.Join(k.sysctls, filepath.Clean("/"+sysctlPath(key))))
	return strings.TrimSpace(string(b)), err
}

func (k *kernel) setSysctl(key, value string) error {
	return os.WriteFile(filepath.Join(k.sysctls, filepath.Clean("/"+sysctlPath(key))), []byte(value), 0o644)
}

// keepTakingRA sets accept_ra to 2 on links with IPv6 that take router advertisements and do not forward. A change on a
// link that is gone by now does not matter.
func (k *kernel) keepTakingRA() error {
	links, err := os.ReadDir(filepath.Join(k.sysctls, "net/ipv6/conf"))
	if err != nil {
		return err
	}
	for _, l := range links {
		if l.Name() == "all" || l.Name() == "default" {
			continue
		}
		takes := true
		for setting, want := range map[string]string{"accept_ra": "1", "forwarding": "0", "disable_ipv6": "0"} {
			have, err := os.ReadFile(filepath.Join(k.sysctls, "net/ipv6/conf", l.Name(), setting))
			takes = takes && err == nil && strings.TrimSpace(string(have)) == want
		}
		if !takes {
			continue
		}
		path := filepath.Join(k.sysctls, "net/ipv6/conf", l.Name(), "accept_ra")
		if err := os.WriteFile(path, []byte("2"), 0o644); ignoreGone(err, unix.ENOENT, unix.ENODEV) != nil {
			return err
		}
	}
	return nil
}

// ignoreGone takes the errors that mean that a thing is deleted already for success.
func ignoreGone(err error, already ...unix.Errno) error {
	for _, e := range already {
		if errors.Is(err, e) {
			return nil
		}
	}
	return err
}
