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

func (k *kernel) ipv6Links() (links []string, err error) {
	list, err := os.ReadDir(filepath.Join(k.sysctls, "net/ipv6/conf"))
	for _, l := range list {
		if l.Name() != "all" && l.Name() != "default" {
			links = append(links, l.Name())
		}
	}
	return links, err
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
