package route

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/egret-net/egret/internal/plan"
	"github.com/egret-net/egret/internal/plane"
)

// The marks of what is ours. AddrProtocol is an address's IFA_PROTO: OVN-Kubernetes' number, which tools such as
// nmstate leave out of what they keep. Kernels before 5.18 have no IFA_PROTO; they keep an address's metric
// (IFA_RT_PRIORITY, Linux 4.18), which is that of the route to its subnet: AddrMetric is the mark of an address without
// one (/32, /128). Protocol is a route's and a rule's protocol; it is in nobody's /etc/iproute2/rt_protos.
const (
	AddrProtocol = 0x55
	AddrMetric   = 0x0e000055
	Protocol     = 69
)

const planeName = "route"

// Options of New. The zero value is right for a node.
type Options struct {
	// SysctlRoot is where sysctls are, "/proc/sys" when empty. Those below net/ are of the network namespace of the
	// thread that calls Grow.
	SysctlRoot string
	// FormerSysctls is the file that keeps the values which sysctls had before: see RestoreSysctls. "" keeps none.
	FormerSysctls string
}

// Plane holds addresses, routes, rules and sysctls; see the package's comment. It is not safe for concurrent use.
type Plane struct {
	stack  stack
	former formerValues
	// unproven are addresses that we added and the kernel has not shown with our mark yet.
	unproven map[plan.Addr]bool
	// renewed is how often addresses that were severed have been removed and added again, until they are seen whole.
	renewed map[plan.Addr]int
}

// New is the plane on the network namespace that the calling thread is in. It needs CAP_NET_ADMIN.
func New(o Options) (*Plane, error) {
	h, err := openSocket()
	if err != nil {
		return nil, err
	}
	a, err := openAddrSocket()
	if err != nil {
		h.Close()
		return nil, err
	}
	changes, err := openHeard()
	if err != nil {
		h.Close()
		a.closeSocket()
		return nil, err
	}
	if o.SysctlRoot == "" {
		o.SysctlRoot = "/proc/sys"
	}
	p := newPlane(&remembering{stack: &kernel{netlink: h, addresses: a, sysctls: o.SysctlRoot}, heard: changes})
	p.former.file = o.FormerSysctls
	return p, nil
}

// answerTime is how long the kernel's answer to one request may take. Linux carries out a netlink request within
// sendmsg(2), and the answer is there when that returns: an answer that never comes did not fit into the socket's
// buffer. Waiting in sendmsg itself, for others' changes under the RTNL lock, takes microseconds, and no deadline
// interrupts it.
const answerTime = 5 * time.Second

// openSocket is a netlink socket with a deadline for each answer; a Handle has none by itself.
func openSocket() (*netlink.Handle, error) {
	h, err := netlink.NewHandleWithOptions(netlink.HandleOptions{RetryInterrupted: true}, unix.NETLINK_ROUTE)
	if err != nil {
		return nil, fmt.Errorf("open a netlink socket: %w", err)
	}
	if err := h.SetSocketTimeout(answerTime); err != nil {
		h.Close()
		return nil, fmt.Errorf("give a netlink socket a deadline: %w", err)
	}
	return h, nil
}

func newPlane(s stack) *Plane {
	return &Plane{stack: s, unproven: map[plan.Addr]bool{}, renewed: map[plan.Addr]int{}}
}

// stack is what the plane asks of a kernel. Things that are gone already are deleted without error. An error that wraps
// a unix.Errno, fs.ErrNotExist or errInvalid is the row's fault, unless targetFails says otherwise.
type stack interface {
	// listLinks lists the links.
	listLinks() (links, error)
	setUp(dev string) error
	listAddrs() (map[plan.Addr]heldAddr, error)
	// putAddr adds an address, or changes it when it is there.
	putAddr(k plan.Addr, spec plan.AddrSpec, there bool) error
	delAddr(k plan.Addr) error
	listRoutes() (map[plan.RouteKey][]heldRoute, error)
	// putRoute adds a route of ours, or changes it when it is there.
	putRoute(k plan.RouteKey, r plan.Route, there bool) error
	delRoute(r heldRoute) error
	// listRules says of each rule whether it is ours. Rules that a plan.Rule cannot express are left out.
	listRules() (map[plan.Rule]bool, error)
	addRule(plan.Rule) error
	delRule(plan.Rule) error
	readSysctl(key string) (string, error)
	setSysctl(key, value string) error
	// ipv6Links lists the links that have settings of IPv6.
	ipv6Links() ([]string, error)
	// forgetAll makes everything be read the next time.
	forgetAll()
}

// links says of a link by name whether it is up, and whether there is one.
type links func(dev string) (up, exists bool)

// heldAddr is an address of a link. severed: somebody deleted the routes that the kernel makes of an address, which it
// does once, when the address is added.
type heldAddr struct {
	spec          plan.AddrSpec
	ours, severed bool
}

// heldRoute is a route of any table. plain ones can be expressed by plan.Route.
type heldRoute struct {
	key    plan.RouteKey
	route  plan.Route
	metric int
	ours   bool
	plain  bool
}

var errInvalid = errors.New("invalid")

// Name is part of plane.Plane.
func (p *Plane) Name() string { return planeName }

// Forget is part of plane.Plane.
func (p *Plane) Forget() { p.stack.forgetAll() }

// Grow is part of plane.Plane. Rows on which others depend come first: settings, addresses, routes, rules.
func (p *Plane) Grow(ctx context.Context, want *plan.State) error {
	return inOrder(ctx, want, p.growSysctls, p.growAddrs, p.growRoutes, p.growRules)
}

// Shrink is part of plane.Plane.
func (p *Plane) Shrink(ctx context.Context, want *plan.State) error {
	return inOrder(ctx, want, p.shrinkRules, p.shrinkRoutes, p.shrinkAddrs)
}

func inOrder(ctx context.Context, want *plan.State, parts ...func(*plan.State, *refusals) error) error {
	var r refusals
	for _, part := range parts {
		err := ctx.Err()
		if err == nil {
			err = part(want, &r)
		}
		if err != nil {
			return errors.Join(append(r, err)...)
		}
	}
	return errors.Join(r...)
}

// refusals collects the errors that are a row's own fault.
type refusals []error

// addRefusal keeps err when it is the row's fault; it returns an error that says that the target fails.
func (r *refusals) addRefusal(owner plan.Owner, row string, err error) error {
	if err == nil {
		return nil
	}
	if targetFails(err) {
		return fmt.Errorf("%s: %w", row, err)
	}
	*r = append(*r, &plane.Refused{Plane: planeName, Owner: owner, Row: row, Err: err})
	return nil
}

func targetFails(err error) bool {
	for _, e := range []unix.Errno{unix.EPERM, unix.ENOBUFS, unix.ENOMEM, unix.EINTR, unix.EAGAIN, unix.EBADF} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

func noLink(dev string) error { return fmt.Errorf("no link is named %q: waiting for it", dev) }
