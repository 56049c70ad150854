package cniserver_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/containernetworking/cni/libcni"
	"github.com/containernetworking/cni/pkg/types"
	current "github.com/containernetworking/cni/pkg/types/100"
	"github.com/containernetworking/plugins/pkg/ns"
	"github.com/google/go-cmp/cmp"
	"github.com/vishvananda/netlink"

	"github.com/egret-net/egret/internal/node/cniserver"
	"github.com/egret-net/egret/internal/plane/ovs"
	"github.com/egret-net/egret/internal/world"
)

func TestAddCheckDelInEachVersion(t *testing.T) {
	for _, version := range []string{"0.4.0", "1.0.0", "1.1.0"} {
		t.Run(version, func(t *testing.T) {
			l := newLab(t, "10.244.1.0/24", "fd00:10:244:1::/64")
			p, list := l.pod("a", "c1"), l.conflist(version)
			start := time.Now()
			r, err := l.cni.AddNetworkList(t.Context(), list, p.conf)
			if err != nil {
				t.Fatalf("ADD: %v", err)
			}
			t.Logf("ADD took %s, with nobody to wait for in OVS, OVN and the API server", time.Since(start))
			if r.Version() != version {
				t.Errorf("result of version %s, want %s", r.Version(), version)
			}
			result, err := current.NewResultFromResult(r)
			if err != nil {
				t.Fatal(err)
			}
			wantAddresses(t, result, "10.244.1.3/24", "fd00:10:244:1::3/64")
			if err := l.cni.CheckNetworkList(t.Context(), list, p.conf); err != nil {
				t.Errorf("CHECK: %v", err)
			}
			for range 2 {
				if err := l.cni.DelNetworkList(t.Context(), list, p.conf); err != nil {
					t.Errorf("DEL: %v", err)
				}
			}
			l.wantNothingLeft()
		})
	}
}

func wantAddresses(t *testing.T, r *current.Result, want ...string) {
	t.Helper()
	var have []string
	for _, ip := range r.IPs {
		have = append(have, ip.Address.String())
		if ip.Gateway == nil || ip.Interface == nil || r.Interfaces[*ip.Interface].Name != "eth0" {
			t.Errorf("address %s has gateway %s and interface %v", ip.Address.String(), ip.Gateway, ip.Interface)
		}
	}
	if diff := cmp.Diff(want, have); diff != "" {
		t.Errorf("addresses (-want +have):\n%s", diff)
	}
}

func TestAnnotation(t *testing.T) {
	for name, c := range map[string]struct {
		subnets []string
		want    string
	}{
		"IPv4": {[]string{"10.244.1.0/24"},
			`{"default":{"ip_addresses":["10.244.1.3/24"],"mac_address":"0a:58:0a:f4:01:03","gateway_ips":["10.244.1.1"],"ip_address":"10.244.1.3/24","gateway_ip":"10.244.1.1","role":"primary"}}`},
		"dual": {[]string{"10.244.1.0/24", "fd00::/64"},
			`{"default":{"ip_addresses":["10.244.1.3/24","fd00::3/64"],"mac_address":"0a:58:0a:f4:01:03","gateway_ips":["10.244.1.1","fd00::1"],"role":"primary"}}`},
		// printf fd00::3 | sha256sum starts with be8cae0d.
		"IPv6": {[]string{"fd00::/64"}, `{"default":{"ip_addresses":["fd00::3/64"],"mac_address":"0a:58:be:8c:ae:0d","gateway_ips":["fd00::1"],"ip_address":"fd00::3/64","gateway_ip":"fd00::1","role":"primary"}}`},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t, c.subnets...)
			p := l.pod("a", "c1")
			l.mustAdd(p)
			have, err := json.Marshal(l.node.annotations["default/a"])
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, string(have)); diff != "" {
				t.Errorf("annotation (-want +have):\n%s", diff)
			}
			if err := l.cni.CheckNetworkList(t.Context(), l.conflist("1.0.0"), p.conf); err != nil {
				t.Errorf("CHECK: %v", err)
			}
		})
	}
}

// TestCheckSeesEachChange also says what an interface has: each thing is taken away once.
func TestCheckSeesEachChange(t *testing.T) {
	inPod := func(change func(netlink.Link) error) func(*lab, pod) error {
		return func(_ *lab, p pod) error {
			return p.netns.Do(func(ns.NetNS) error {
				link, err := netlink.LinkByName("eth0")
				if err != nil {
					return err
				}
				return change(link)
			})
		}
	}
	for name, change := range map[string]func(*lab, pod) error{
		"address": inPod(func(link netlink.Link) error {
			a, err := netlink.ParseAddr("10.244.1.3/24")
			return errors.Join(err, netlink.AddrDel(link, a))
		}),
		"IPv6 address": inPod(func(link netlink.Link) error {
			a, err := netlink.ParseAddr("fd00::3/64")
			return errors.Join(err, netlink.AddrDel(link, a))
		}),
		"route": inPod(func(link netlink.Link) error {
			return netlink.RouteDel(&netlink.Route{LinkIndex: link.Attrs().Index, Gw: []byte{10, 244, 1, 1}})
		}),
		"MAC": inPod(func(link netlink.Link) error {
			return netlink.LinkSetHardwareAddr(link, []byte{2, 0, 0, 0, 0, 1})
		}),
		"down": inPod(netlink.LinkSetDown),
		"name": inPod(func(link netlink.Link) error {
			return errors.Join(netlink.LinkSetDown(link), netlink.LinkSetName(link, "eth1"))
		}),
		"pair":     inPod(netlink.LinkDel),
		"port":     func(l *lab, _ pod) error { return l.ports.DelPodPort(context.Background(), hostVeths(l.t)[0]) },
		"flows":    func(l *lab, _ pod) error { l.faults.set("WaitInstalled"); return nil },
		"host end": func(l *lab, _ pod) error { return setHostEndDown(hostVeths(l.t)[0]) },
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t, "10.244.1.0/24", "fd00::/64")
			p := l.pod("a", "c1")
			l.mustAdd(p)
			if err := l.cni.CheckNetworkList(t.Context(), l.conflist("1.0.0"), p.conf); err != nil {
				t.Fatalf("CHECK before the change: %v", err)
			}
			if err := change(l, p); err != nil {
				t.Fatal(err)
			}
			if err := l.cni.CheckNetworkList(t.Context(), l.conflist("1.0.0"), p.conf); err == nil {
				t.Error("CHECK sees nothing")
			}
			l.faults.set("")
			if err := l.del(p); err != nil {
				t.Errorf("DEL: %v", err)
			}
			l.wantNothingLeft()
		})
	}
}

func setHostEndDown(name string) error {
	link, err := netlink.LinkByName(name)
	if err != nil {
		return err
	}
	return netlink.LinkSetDown(link)
}

// TestPodKnowsItsRouter: while ovn-controller stands still nobody answers for it in IPv6.
func TestPodKnowsItsRouter(t *testing.T) {
	for router, subnets := range map[string][]string{
		"0a:58:0a:f4:01:01":                       {"10.244.1.0/24", "fd00::/64"},
		world.MAC(netip.MustParseAddr("fd00::1")): {"fd00::/64"},
	} {
		l := newLab(t, subnets...)
		p := l.pod("a", "c1")
		l.mustAdd(p)
		var have []string
		err := p.netns.Do(func(ns.NetNS) error {
			all, err := netlink.NeighList(0, netlink.FAMILY_V6)
			for _, n := range all {
				if n.State == netlink.NUD_PERMANENT {
					have = append(have, n.IP.String()+" "+n.HardwareAddr.String())
				}
			}
			return err
		})
		if want := []string{"fd00::1 " + router}; err != nil || !slices.Equal(have, want) {
			t.Errorf("knows %q, want %q (%v)", have, want, err)
		}
		if err := l.del(p); err != nil {
			t.Error(err)
		}
	}
}

func TestIPv6AddressIsUsableAtOnce(t *testing.T) {
	l := newLab(t, "fd00::/64")
	p := l.pod("a", "c1")
	l.mustAdd(p)
	err := p.netns.Do(func(ns.NetNS) error {
		link, err := netlink.LinkByName("eth0")
		if err != nil {
			return err
		}
		wantNoneTentative(t, link)
		if link.Attrs().MTU != 1400 {
			t.Errorf("MTU %d, want 1400", link.Attrs().MTU)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// wantNoneTentative gives the link-local address less time than duplicate address detection takes (a second at least):
// the kernel makes it in the background. The pod's own addresses get none.
func wantNoneTentative(t *testing.T, link netlink.Link) {
	t.Helper()
	const tentative = 0x40
	for start := time.Now(); ; time.Sleep(5 * time.Millisecond) {
		addrs, err := netlink.AddrList(link, netlink.FAMILY_V6)
		if err != nil {
			t.Fatal(err)
		}
		late := slices.DeleteFunc(addrs, func(a netlink.Addr) bool { return a.Flags&tentative == 0 })
		if len(late) == 0 {
			return
		}
		if !late[0].IP.IsLinkLocalUnicast() || time.Since(start) > 900*time.Millisecond {
			t.Fatalf("%s is tentative", late[0].IPNet)
		}
	}
}

func TestAddAgainGivesTheSame(t *testing.T) {
	l := newLab(t, "10.244.1.0/24")
	p := l.pod("a", "c1")
	want := l.mustAdd(p)
	have := l.mustAdd(p)
	if diff := cmp.Diff(want, have); diff != "" {
		t.Errorf("second answer (-first +second):\n%s", diff)
	}
	second := *p.conf
	second.IfName = "eth1"
	_, err := l.cni.AddNetworkList(t.Context(), l.conflist("1.0.0"), &second)
	wantCode(t, err, types.ErrInvalidEnvironmentVariables, "eth0")
}

func TestSameAddTwiceAtTheSameTime(t *testing.T) {
	l := newLab(t, "10.244.1.0/24")
	p := l.pod("a", "c1")
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			r, err := l.add(p)
			if err != nil {
				t.Error(err)
				return
			}
			wantAddresses(t, r, "10.244.1.3/24")
		})
	}
	group.Wait()
	if err := l.del(p); err != nil {
		t.Error(err)
	}
	l.wantNothingLeft()
}

func TestNewSandboxTakesOverFromTheFormer(t *testing.T) {
	l := newLab(t, "10.244.1.0/24")
	former, next := l.pod("a", "c1"), l.pod("a", "c2")
	l.mustAdd(former)
	wantAddresses(t, l.mustAdd(next), "10.244.1.4/24")
	if len(hostVeths(t)) != 1 || l.server.AddressesInUse() != 1 {
		t.Errorf("veths %v, %d containers with addresses: the former sandbox is still attached", hostVeths(t),
			l.server.AddressesInUse())
	}
	if err := l.del(former); err != nil {
		t.Fatal(err)
	}
	ports, err := l.ports.PodPorts(t.Context())
	if err != nil || len(ports) != 1 || ports[0].SandboxID != "c2" {
		t.Errorf("ports %v, %v, want that of c2 alone", ports, err)
	}
	if len(hostVeths(t)) != 1 || len(l.node.attached) != 1 {
		t.Errorf("veths %v and attachments %v, want one of each", hostVeths(t), l.node.attached)
	}
}

func TestFailedAddLeavesNothing(t *testing.T) {
	for name, arrange := range map[string]func(*lab, pod){
		"Pod":              func(l *lab, _ pod) { l.faults.set("Pod") },
		"Annotate":         func(l *lab, _ pod) { l.faults.set("Annotate") },
		"AddPodPort":       func(l *lab, _ pod) { l.faults.set("AddPodPort") },
		"Attached":         func(l *lab, _ pod) { l.faults.set("Attached") },
		"WaitInstalled":    func(l *lab, _ pod) { l.faults.set("WaitInstalled") },
		"another UID":      func(l *lab, _ pod) { l.node.uid = "newer" },
		"host network":     func(l *lab, _ pod) { l.node.hostNetwork = true },
		"no subnet":        func(l *lab, _ pod) { l.node.subnets = nil },
		"interface exists": func(l *lab, p pod) { makeDummyPair(l.t, p) },
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t, "10.244.1.0/24")
			p := l.pod("a", "c1")
			arrange(l, p)
			if r, err := l.add(p); err == nil {
				t.Fatalf("ADD answered %v", r)
			}
			if len(l.node.annotations) > 0 {
				t.Errorf("annotations left: %v", l.node.annotations)
			}
			l.wantNothingLeft()
		})
	}
}

// makeDummyPair puts an interface eth0 into the pod, both ends of it.
func makeDummyPair(t *testing.T, p pod) {
	t.Helper()
	err := p.netns.Do(func(ns.NetNS) error {
		return netlink.LinkAdd(&netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: "eth0"}, PeerName: "other"})
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestFailedDelIsMadeAgain(t *testing.T) {
	for _, step := range []string{"DelPodPort", "Detached"} {
		t.Run(step, func(t *testing.T) {
			l := newLab(t, "10.244.1.0/24")
			p := l.pod("a", "c1")
			l.mustAdd(p)
			l.faults.set(step)
			if err := l.del(p); err == nil {
				t.Fatal("DEL hides the failure")
			}
			if l.server.AddressesInUse() != 1 {
				t.Error("the address was freed while something of the pod is left")
			}
			l.faults.set("")
			if err := l.del(p); err != nil {
				t.Fatal(err)
			}
			l.wantNothingLeft()
		})
	}
}

// TestHalfADelIsFinished: what a DEL or a release leaves whose port has gone already is taken away by who comes next,
// though the runtime has forgotten the container.
func TestHalfADelIsFinished(t *testing.T) {
	for name, next := range map[string]func(*lab) error{
		"GC": func(l *lab) error { return l.collect(t) },
		"release": func(l *lab) error {
			return l.server.ReleaseCompleted(t.Context(), "default", "a", "uid")
		},
	} {
		t.Run(name, func(t *testing.T) {
			for _, leave := range []func(*lab, pod) error{(*lab).del, (*lab).remade} {
				l := newLab(t, "10.244.1.0/24")
				p := l.pod("a", "c1")
				l.mustAdd(p)
				l.faults.set("Detached")
				if leave(l, p) == nil || next(l) == nil {
					t.Fatal("the failure is hidden")
				}
				l.faults.set("")
				if err := next(l); err != nil {
					t.Fatal(err)
				}
				l.wantNothingLeft()
			}
		})
	}
}

// remade is an ADD of the pod's next sandbox, which begins with the end of the former one.
func (l *lab) remade(pod) error {
	_, err := l.add(l.pod("a", "c2"))
	return err
}

// TestDelOfARefusedInterface: a runtime cleans up after an ADD that was refused; the pod keeps the interface that it
// has, whatever it calls that by now.
func TestDelOfARefusedInterface(t *testing.T) {
	l := newLab(t, "10.244.1.0/24")
	p := l.pod("a", "c1")
	l.mustAdd(p)
	second := pod{p.netns, runtimeConf("a", "c1", p.netns.Path())}
	second.conf.IfName = "eth1"
	if _, err := l.add(second); err == nil {
		t.Fatal("a second interface was not refused")
	}
	if err := l.del(second); err != nil {
		t.Fatal(err)
	}
	if ports, err := l.ports.PodPorts(t.Context()); err != nil || len(ports) != 1 || len(hostVeths(t)) != 1 ||
		l.server.AddressesInUse() != 1 {
		t.Fatalf("of eth0 are left: ports %v, veths %v, %v", ports, hostVeths(t), err)
	}
	must(t, p.netns.Do(func(ns.NetNS) error {
		link, err := netlink.LinkByName("eth0")
		return errors.Join(err, netlink.LinkSetName(link, "eth0-nic"))
	}))
	if err := l.del(p); err != nil {
		t.Fatal(err)
	}
	l.wantNothingLeft()
}

// TestPortOfFormerAgent: of a port that does not say which interface it is, a DEL of any is its end.
func TestPortOfFormerAgent(t *testing.T) {
	l := newLab(t, "10.244.1.0/24")
	p := l.pod("a", "c1")
	l.mustAdd(p)
	ports, err := l.ports.PodPorts(t.Context())
	must(t, err)
	ports[0].IfName = ""
	must(t, l.ports.AddPodPort(t.Context(), ports[0]))
	must(t, l.del(p))
	l.wantNothingLeft()
}

// TestGarbledPort: an address that cannot be read is its own pod's trouble.
func TestGarbledPort(t *testing.T) {
	fake := ovs.NewFake()
	l := newLab(t, "10.244.1.0/24")
	l.stop()
	l.ports = faultyPorts{cniserver.FromOVS(garbling{fake}), l.faults}
	l.start()
	bad, good := l.pod("a", "c1"), l.pod("b", "c2")
	first := l.mustAdd(bad)
	l.mustAdd(good)
	must(t, l.del(good))
	l.stop()
	l.start() // it has the addresses from the ports
	if next := l.mustAdd(good); next.IPs[0].Address.IP.Equal(first.IPs[0].Address.IP) {
		t.Errorf("another pod has %v, too", next.IPs[0])
	}
	must(t, l.collect(t))
	l.wantNothingLeft()
}

// garbling shows one pod's address as somebody wrote it.
type garbling struct{ *ovs.Fake }

func (g garbling) PodPorts(ctx context.Context) ([]ovs.PodPort, error) {
	ports, err := g.Fake.PodPorts(ctx)
	for i := range ports {
		if ports[i].Name == "a" {
			ports[i].IPs = []string{"10.244.1.300"}
		}
	}
	return ports, err
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestPluginKilledDuringAdd(t *testing.T) {
	l := newLab(t, "10.244.1.0/24")
	l.node.hang = make(chan struct{})
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-l.node.hang
		cancel()
	}()
	if _, err := l.cni.AddNetworkList(ctx, l.conflist("1.0.0"), l.pod("a", "c1").conf); err == nil {
		t.Fatal("ADD answered")
	}
	l.stop() // waits for the call
	l.wantNothingLeft()
}

func TestStatusAndReadiness(t *testing.T) {
	l := newLab(t, "10.244.1.0/24")
	list := l.conflist("1.1.0")
	if err := l.cni.GetStatusNetworkList(t.Context(), list); err != nil {
		t.Errorf("STATUS of a ready agent: %v", err)
	}
	l.node.notReady = errors.New("no subnet yet")
	wantCode(t, l.cni.GetStatusNetworkList(t.Context(), list), types.ErrPluginNotAvailable, "no subnet yet")
	p := l.pod("a", "c1")
	_, err := l.add(p)
	wantCode(t, err, types.ErrTryAgainLater, "no subnet yet")
	l.stop()
	wantCode(t, l.cni.GetStatusNetworkList(t.Context(), list), types.ErrPluginNotAvailable, l.socket)
	_, err = l.add(p)
	wantCode(t, err, types.ErrTryAgainLater, "egret-node")
	wantCode(t, l.del(p), types.ErrTryAgainLater, "egret-node")
}

func TestBadConfig(t *testing.T) {
	l := newLab(t, "10.244.1.0/24")
	p := l.pod("a", "c1")
	for field, text := range map[string]string{"ipam": `"ipam":{"type":"host-local"}`, "socket": `"socket":"here"`} {
		_, err := l.cni.AddNetworkList(t.Context(), l.conflist("1.0.0", text), p.conf)
		wantCode(t, err, types.ErrInvalidNetworkConfig, field)
	}
	nobody := *p.conf
	nobody.Args = nil
	_, err := l.cni.AddNetworkList(t.Context(), l.conflist("1.0.0"), &nobody)
	wantCode(t, err, types.ErrInvalidEnvironmentVariables, "K8S_POD_NAMESPACE")
	l.wantNothingLeft()
}

func TestGarbageCollection(t *testing.T) {
	l := newLab(t, "10.244.1.0/24")
	l.mustAdd(l.pod("a", "c1"))
	l.mustAdd(l.pod("b", "c2"))
	if err := l.collect(t, types.GCAttachment{ContainerID: "c2", IfName: "eth0"}); err != nil {
		t.Fatal(err)
	}
	ports, err := l.ports.PodPorts(t.Context())
	if err != nil || len(ports) != 1 || ports[0].SandboxID != "c2" || len(hostVeths(t)) != 1 {
		t.Errorf("ports %v, veths %v, %v, want those of c2 alone", ports, hostVeths(t), err)
	}
	if err := l.collect(t); err != nil {
		t.Fatal(err)
	}
	l.wantNothingLeft()
}

// collect is GC of a runtime that knows some containers. It has a cache of its own: else the library itself would call
// DEL for what it remembers.
func (l *lab) collect(t *testing.T, valid ...types.GCAttachment) error {
	t.Helper()
	plugin, _ := buildPlugin()
	args := &libcni.GCArgs{ValidAttachments: append([]types.GCAttachment{}, valid...)}
	return newCNI(plugin, t.TempDir()).GCNetworkList(t.Context(), l.conflist("1.1.0"), args)
}

func TestManyPodsAtTheSameTime(t *testing.T) {
	l := newLab(t, "10.244.1.0/24", "fd00::/64")
	const count = 20
	pods := make([]pod, count)
	for i := range pods {
		pods[i] = l.pod(fmt.Sprint("pod", i), fmt.Sprint("c", i))
	}
	var group sync.WaitGroup
	var mu sync.Mutex
	start := time.Now()
	owner := map[string]int{}
	for i, p := range pods {
		group.Go(func() {
			r, err := l.add(p)
			if err != nil {
				t.Errorf("ADD of %d: %v", i, err)
				return
			}
			mu.Lock()
			defer mu.Unlock()
			if other, dup := owner[r.IPs[0].Address.String()]; dup {
				t.Errorf("pods %d and %d have %s", i, other, r.IPs[0].Address.String())
			}
			owner[r.IPs[0].Address.String()] = i
		})
	}
	group.Wait()
	t.Logf("%d ADDs at the same time took %s", count, time.Since(start))
	for _, p := range pods {
		group.Go(func() {
			if err := l.del(p); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	l.wantNothingLeft()
}

func TestRestartKeepsAddressesAndRemovesWhatIsGone(t *testing.T) {
	l := newLab(t, "10.244.1.0/24")
	a, b := l.pod("a", "c1"), l.pod("b", "c2")
	l.mustAdd(a)
	l.mustAdd(b)
	l.stop()
	l.start()
	wantAddresses(t, l.mustAdd(a), "10.244.1.3/24")
	wantAddresses(t, l.mustAdd(l.pod("c", "c3")), "10.244.1.5/24")
	l.stop()
	l.start()
	a.destroy()
	waitForVeths(t, 2)
	if err := l.del(a); err != nil {
		t.Errorf("DEL of a pod whose network namespace is gone: %v", err)
	}
	b.destroy()
	waitForVeths(t, 1)
	if err := l.server.Sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	ports, err := l.ports.PodPorts(t.Context())
	if err != nil || len(ports) != 1 || ports[0].SandboxID != "c3" {
		t.Errorf("ports %v, %v, want that of c3 alone", ports, err)
	}
}

// TestAddressOfAPodWithoutPort: after a boot a pod that waits for a volume still says the address that it had.
func TestAddressOfAPodWithoutPort(t *testing.T) {
	l := newLab(t, "10.244.1.0/24")
	l.node.said = []netip.Addr{netip.MustParseAddr("10.244.1.3")}
	wantAddresses(t, l.mustAdd(l.pod("a", "c1")), "10.244.1.4/24")
}

// TestAsksTheLoopWithoutTheLock: while the loop does not answer, requests for other containers go on.
func TestAsksTheLoopWithoutTheLock(t *testing.T) {
	l := newLab(t, "10.244.1.0/24")
	l.node.asked = func() {
		went := make(chan struct{})
		go func() { l.server.AddressesInUse(); close(went) }()
		select {
		case <-went:
		case <-time.After(5 * time.Second):
			t.Error("the lock is held")
		}
	}
	l.mustAdd(l.pod("a", "c1"))
}

// waitForVeths waits for the kernel, which destroys network namespaces in the background.
func waitForVeths(t *testing.T, count int) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); len(hostVeths(t)) != count; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("veths %v, want %d", hostVeths(t), count)
		}
	}
}

func TestCompletedPodGivesItsAddressUp(t *testing.T) {
	l := newLab(t, "10.244.1.0/29")
	p := l.pod("a", "c1")
	l.mustAdd(p)
	if err := l.server.ReleaseCompleted(t.Context(), "default", "a", "another uid"); err != nil ||
		l.server.AddressesInUse() != 1 {
		t.Fatalf("released another pod's addresses, %v", err)
	}
	if err := l.server.ReleaseCompleted(t.Context(), "default", "a", "uid"); err != nil {
		t.Fatal(err)
	}
	l.wantNothingLeft()
	if err := l.del(p); err != nil {
		t.Error(err)
	}
}

func TestFullSubnet(t *testing.T) {
	l := newLab(t, "10.244.1.0/29")
	for i := range 4 {
		l.mustAdd(l.pod(fmt.Sprint("pod", i), fmt.Sprint("c", i)))
	}
	_, err := l.add(l.pod("one-too-many", "c5"))
	wantCode(t, err, types.ErrTryAgainLater, "4 of 4 addresses of subnet 10.244.1.0/29")
}

func TestSubnetsThatChange(t *testing.T) {
	l := newLab(t, "10.244.1.0/24")
	old := l.pod("a", "c1")
	l.mustAdd(old)
	l.node.subnets = newFakeNode(nil, "10.244.2.0/24").subnets
	wantAddresses(t, l.mustAdd(l.pod("b", "c2")), "10.244.2.3/24")
	if err := l.del(old); err != nil || l.server.AddressesInUse() != 1 {
		t.Errorf("DEL of a pod of the former subnet: %v, %d in use", err, l.server.AddressesInUse())
	}
}

// TestRefusedPod: of a pod that is refused nothing is made, and nothing written.
func TestRefusedPod(t *testing.T) {
	l := newLab(t, "10.244.1.0/24")
	l.node.refused = "no network yet"
	_, err := l.add(l.pod("p", "container"))
	wantCode(t, err, types.ErrInternal, "no network yet")
	l.wantNothingLeft()
	if l.node.annotated > 0 {
		t.Errorf("its annotations were written %d times", l.node.annotated)
	}
}

func TestNetnsThatIsNotThere(t *testing.T) {
	l := newLab(t, "10.244.1.0/24")
	_, err := l.cni.AddNetworkList(t.Context(), l.conflist("1.0.0"), runtimeConf("a", "c1", "/run/netns/none"))
	if err == nil {
		t.Error("ADD answered")
	}
	file := filepath.Join(t.TempDir(), "plain")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := l.cni.AddNetworkList(t.Context(), l.conflist("1.0.0"), runtimeConf("a", "c1", file)); err == nil {
		t.Error("ADD answered for a plain file")
	}
	l.wantNothingLeft()
}
