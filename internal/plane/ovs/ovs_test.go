package ovs

import (
	"context"
	"log/slog"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/egret-net/egret/internal/plan"
	"github.com/egret-net/egret/internal/plane"
	"github.com/egret-net/egret/internal/plane/ovs/ovstest"
	"github.com/egret-net/egret/internal/plane/planetest"
)

func start(t *testing.T) (*ovstest.Switch, *DB) {
	t.Helper()
	s := ovstest.Start(t, ovstest.Dummy)
	d := connect(t, s)
	must(t, d.EnsureBridge(t.Context(), Bridge{Name: "br-int", FailMode: "secure"}))
	return s, d
}

func connect(t *testing.T, s *ovstest.Switch) *DB {
	t.Helper()
	d, err := Connect(t.Context(), s.DB(), slog.New(slog.DiscardHandler))
	must(t, err)
	t.Cleanup(d.Close)
	return d
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func stateA() *plan.State {
	s := plan.New()
	s.OVSIDs.Put(planetest.Owner("a"), "ovn-encap-ip", "10.0.0.1")
	s.OVSIDs.Put(planetest.Owner("a"), "ovn-remote", "unix:/run/ovn/sb.sock")
	s.Ports.Put(planetest.Owner("a"),
		plan.Port{Bridge: "br-int", Name: "mp0"}, plan.PortSpec{Type: "internal", MAC: "0a:58:0a:f4:01:02",
			MTU: 1400, ExternalIDs: "iface-id=k8s-n1"})
	s.Ports.Put(planetest.Owner("a"), plan.Port{Bridge: "br-int", Name: "bfd-3"}, tunnelSpec("100"))
	s.Ports.Put(planetest.Owner("a"), plan.Port{Bridge: "br-int", Name: "old0"}, plan.PortSpec{Type: "internal"})
	return s
}

func stateB() *plan.State {
	s := plan.New()
	s.OVSIDs.Put(planetest.Owner("a"), "ovn-encap-ip", "10.0.0.2")
	s.OVSIDs.Put(planetest.Owner("a"), "ovn-encap-type", "geneve")
	s.Ports.Put(planetest.Owner("a"),
		plan.Port{Bridge: "br-int", Name: "mp0"}, plan.PortSpec{Type: "internal", MAC: "0a:58:0a:f4:01:03",
			ExternalIDs: "iface-id=k8s-n2"})
	s.Ports.Put(planetest.Owner("a"), plan.Port{Bridge: "br-int", Name: "bfd-3"}, tunnelSpec("200"))
	s.Ports.Put(planetest.Owner("a"), plan.Port{Bridge: "br-int", Name: "new0"}, plan.PortSpec{Type: "internal"})
	return s
}

func tunnelSpec(interval string) plan.PortSpec {
	return plan.PortSpec{Type: "geneve", ExternalIDs: plan.Pairs("egret-node", "n2"), Options: plan.Pairs("key", "7",
		"remote_ip", "10.0.0.2"),
		BFD: plan.Pairs("enable", "true", "min_tx", interval)}
}

func bad() *plan.State {
	s := stateA()
	s.Ports.Put(planetest.Owner("bad"), plan.Port{Bridge: "nowhere", Name: "x"}, plan.PortSpec{Type: "internal"})
	return s
}

// hostile are ports and settings with separators in them.
func hostile() []plan.Rows {
	at := func(name string, s plan.PortSpec) plan.Rows {
		return plan.Rows{Ports: map[plan.Port]plan.PortSpec{{Bridge: "br-int", Name: name}: s}}
	}
	return []plan.Rows{
		at("a\nb", plan.PortSpec{Type: "internal"}), at("../x", plan.PortSpec{Type: "internal"}),
		at("a b", plan.PortSpec{Type: "internal"}),
		at("x", plan.PortSpec{Type: "internal", MAC: "02:00:00:00:00:01 02:00:00:00:00:02"}),
		at("x", plan.PortSpec{Type: "geneve", Options: "key=1,remote_ip=10.0.0.1,remote_ip=10.0.0.2"}),
		at("x", plan.PortSpec{Type: "geneve", Options: "remote_ip=10.0.0.1\n"}),
		at("x", plan.PortSpec{Type: "internal", ExternalIDs: "iface-id=n1,n2"}),
		{OVSIDs: map[string]string{"some-key": "10.0.0.1\n"}}, {OVSIDs: map[string]string{"a b": "c"}},
	}
}

// dump prints settings and ports of ours, read by a connection of its own.
func dump(t *testing.T, d *DB) string {
	// a write of its own brings d's copy up to date with other connections' writes
	must(t, d.AwaitSwitchd(t.Context()))
	root, err := d.rootRow(t.Context())
	must(t, err)
	st := plan.New()
	for _, k := range strings.Fields(root.ExternalIDs[keysKey]) {
		st.OVSIDs.Put(plan.Owner{}, k, root.ExternalIDs[k])
	}
	top, err := d.readTopology(t.Context())
	must(t, err)
	for name, at := range top.ports {
		if at.iface.ExternalIDs[ownerKey] == ownerPlan {
			st.Ports.Put(plan.Owner{}, plan.Port{Bridge: at.bridge, Name: name}, specOf(at.iface))
		}
	}
	return st.Text()
}

func specOf(i iface) plan.PortSpec {
	spec := plan.PortSpec{Type: i.Type}
	if i.MAC != nil {
		spec.MAC = *i.MAC
	}
	if i.MTURequest != nil {
		spec.MTU = *i.MTURequest
	}
	ids := maps.Clone(i.ExternalIDs)
	delete(ids, ownerKey)
	delete(ids, keysKey)
	spec.ExternalIDs, spec.Options, spec.BFD = text(ids), text(i.Options), text(i.BFD)
	return spec
}

func text(m map[string]string) string {
	var kv []string
	for k, v := range m {
		kv = append(kv, k, v)
	}
	return plan.Pairs(kv...)
}

func TestConformance(t *testing.T) {
	planetest.Run(t, func(t *testing.T) *planetest.Rig {
		s, d := start(t)
		return &planetest.Rig{
			New: func(t *testing.T) plane.Plane { return NewPlane(connect(t, s)) },
			A:   stateA(), B: stateB(), Bad: bad(), BadOwner: planetest.Owner("bad"),
			Hostile: hostile(), Monitored: true,
			Dump: func(t *testing.T) string { return dump(t, d) },
			Text: func(st *plan.State) string { return st.Text() },
			PutForeign: func(*testing.T) {
				s.Vsctl("set", "open", ".", "external_ids:hostname=n1", "--", "--may-exist", "add-port", "br-int",
					"theirs", "--",
					"set", "interface", "theirs", "external_ids:egret=pod")
			},
			DumpForeign: func(*testing.T) string {
				return s.Vsctl("get", "open", ".", "external_ids:hostname", "--", "get", "interface", "theirs",
					"external_ids", "name")
			},
			DeleteOurs: func(*testing.T) { s.Vsctl("del-port", "mp0") },
		}
	})
}

func TestPortOfOthersIsRefused(t *testing.T) {
	s, d := start(t)
	s.Vsctl("add-port", "br-int", "mp0")
	err := plane.Apply(t.Context(), []plane.Plane{NewPlane(d)}, stateA())
	if r := plane.Refusals(err); len(r) != 1 || r[0].Owner != planetest.Owner("a") {
		t.Fatalf("got %v, want one refusal of owner a", err)
	}
	if ids := s.Vsctl("get", "interface", "mp0", "external_ids"); strings.Contains(ids, "egret") {
		t.Fatalf("took over the port of others: %s", ids)
	}
}

func TestKeysOfOthersOnOurPortStay(t *testing.T) {
	s, d := start(t)
	p := NewPlane(d)
	must(t, plane.Apply(t.Context(), []plane.Plane{p}, stateA()))
	s.Vsctl("set", "interface", "mp0", "external_ids:ovn-installed=true")
	must(t, plane.Apply(t.Context(), []plane.Plane{p}, stateB()))
	if got := s.Vsctl("get", "interface", "mp0", "external_ids"); !strings.Contains(got, "ovn-installed=") ||
		strings.Contains(got, "k8s-n1") {
		t.Fatalf("external_ids are %s", got)
	}
}

func pod(iface, sandbox string) PodPort {
	return PodPort{Bridge: "br-int", HostIface: iface, IfaceID: "ns_web", SandboxID: sandbox, Namespace: "ns",
		Name: "web", UID: "u1",
		NetNS: "/run/netns/x", MAC: "0a:58:0a:f4:01:05", IPs: []string{"10.244.1.5", "fd00:10:244:1::5"}}
}

func TestPodPortIsReadBack(t *testing.T) {
	s, d := start(t)
	want := pod("veth1", "s1")
	want.EgressPaused, want.Network, want.Definition = true, "cluster_udn_blue", "ns/blue"
	must(t, d.AddPodPort(t.Context(), want))
	must(t, d.AddPodPort(t.Context(), want))
	have, err := connect(t, s).PodPorts(t.Context())
	must(t, err)
	if diff := cmp.Diff([]PodPort{want}, have); diff != "" {
		t.Fatalf("read back (-want +have)\n%s", diff)
	}
	must(t, d.SetEgressPaused(t.Context(), "veth1", false))
	if have, err = d.PodPorts(t.Context()); err != nil || len(have) != 1 || have[0].EgressPaused {
		t.Fatalf("after release: %v, %v", have, err)
	}
	must(t, d.DelPodPort(t.Context(), "veth1"))
	must(t, d.DelPodPort(t.Context(), "veth1"))
	if have, err = d.PodPorts(t.Context()); err != nil || len(have) != 0 {
		t.Fatalf("after delete: %v, %v", have, err)
	}
	if out := s.Vsctl("list-ports", "br-int"); out != "" {
		t.Fatalf("ports left: %s", out)
	}
}

func TestNewSandboxTakesThePortOver(t *testing.T) {
	s, d := start(t)
	must(t, d.AddPodPort(t.Context(), pod("veth1", "s1")))
	s.Vsctl("set", "interface", "veth1", "external_ids:ovn-installed=true")
	must(t, d.AddPodPort(t.Context(), pod("veth1", "s2")))
	must(t, d.AddPodPort(t.Context(), pod("veth2", "s3")))
	have, err := d.PodPorts(t.Context())
	must(t, err)
	if len(have) != 2 || have[0].SandboxID != "s2" || have[0].Installed || have[0].IfaceID != "" ||
		have[1].IfaceID != "ns_web" {
		t.Fatalf("ports are %+v", have)
	}
}

func TestPlanDoesNotTouchPodPorts(t *testing.T) {
	_, d := start(t)
	must(t, d.AddPodPort(t.Context(), pod("veth1", "s1")))
	must(t, plane.Apply(t.Context(), []plane.Plane{NewPlane(d)}, plan.New()))
	if have, err := d.PodPorts(t.Context()); err != nil || len(have) != 1 {
		t.Fatalf("ports %v, %v", have, err)
	}
}

func TestWaitInstalled(t *testing.T) {
	s, d := start(t)
	must(t, d.AddPodPort(t.Context(), pod("veth1", "s1")))
	short, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := d.WaitInstalled(short, "veth1"); err == nil {
		t.Fatal("returned before ovn-controller said so")
	}
	done := make(chan error)
	go func() { done <- d.WaitInstalled(t.Context(), "veth1") }()
	s.Vsctl("set", "interface", "veth1", "external_ids:ovn-installed=true")
	select {
	case err := <-done:
		must(t, err)
	case <-time.After(time.Second):
		t.Fatal("did not return within a second")
	}
}

func TestNumbers(t *testing.T) {
	s, d := start(t)
	s.Vsctl("add-br", "breth0", "--", "add-port", "breth0", "eth0", "--", "set", "interface", "eth0",
		"ofport_request=7", "--",
		"add-port", "breth0", "patch-physnet_n1-to-br-int", "--", "set", "interface", "patch-physnet_n1-to-br-int",
		"type=patch",
		"options:peer=patch-br-int-to-physnet_n1", "ofport_request=9", "--", "set", "bridge", "br-int",
		"external_ids:ct-zone-GR_n1_snat=12")
	must(t, d.AwaitSwitchd(t.Context()))
	if n, ok := d.OFPort("eth0"); !ok || n != 7 {
		t.Errorf("eth0 is %d, %v; want 7", n, ok)
	}
	if _, ok := d.OFPort("nothing"); ok {
		t.Error("an absent interface has a number")
	}
	if n, ok := d.OFPort("patch-physnet_n1-to-br-int"); !ok || n != 9 {
		t.Errorf("the patch port is %d, %v; want 9", n, ok)
	}
	if z, ok := d.CTZone(t.Context(), "GR_n1_snat"); !ok || z != 12 {
		t.Errorf("zone is %d, %v; want 12", z, ok)
	}
	if _, ok := d.CTZone(t.Context(), "GR_n2_snat"); ok {
		t.Error("an absent zone has a number")
	}
}

func TestChangedLeavesCountersOut(t *testing.T) {
	s, d := start(t)
	must(t, d.AwaitSwitchd(t.Context()))
	time.Sleep(100 * time.Millisecond)
	select {
	case <-d.Changed():
	default:
	}
	s.Vsctl("set", "bridge", "br-int", "external_ids:ovn-nb-cfg=5", "external_ids:ovn-nb-cfg-ts=6")
	select {
	case <-d.Changed():
		t.Fatal("told of a counter")
	case <-time.After(100 * time.Millisecond):
	}
	s.Vsctl("set", "bridge", "br-int", "external_ids:ct-zone-GR_n1_snat=5")
	select {
	case <-d.Changed():
	case <-time.After(time.Second):
		t.Fatal("not told of a new zone")
	}
}

// TestDatabaseRestart: a write in a restart waits for its end, or says that the connection broke, and goes through when
// it is tried again.
func TestDatabaseRestart(t *testing.T) {
	s, d := start(t)
	s.KillDB()
	done := make(chan error, 1)
	go func() { done <- d.AddPodPort(t.Context(), pod("veth1", "s1")) }()
	time.Sleep(100 * time.Millisecond)
	s.StartDB()
	err := <-done
	for end := time.Now().Add(20 * time.Second); err != nil &&
		time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		if !strings.Contains(err.Error(), "is ovsdb-server running?") {
			t.Fatal(err)
		}
		err = d.AddPodPort(t.Context(), pod("veth1", "s1"))
	}
	must(t, err)
	s.Vsctl("set", "interface", "veth1", "external_ids:ovn-installed=true")
	must(t, d.WaitInstalled(t.Context(), "veth1"))
}

func TestVSwitchdRestart(t *testing.T) {
	s, _ := start(t)
	restarts := VSwitchdRestarts(t.Context(), s.RunDir, slog.New(slog.DiscardHandler))
	time.Sleep(50 * time.Millisecond)
	for range 2 {
		s.KillVSwitchd()
		select {
		case <-restarts:
			t.Fatal("signalled while it was down")
		case <-time.After(100 * time.Millisecond):
		}
		s.StartVSwitchd()
		back := time.Now()
		select {
		case <-restarts:
			t.Logf("signalled %v after it answered", time.Since(back))
		case <-time.After(2 * bridgesWithin):
			t.Fatal("no signal")
		}
		if out := s.Appctl("ofproto/list"); !strings.Contains(out, "br-int") {
			t.Fatal("signalled before the bridges were there")
		}
	}
	select {
	case <-restarts:
		t.Fatal("signalled without a restart")
	case <-time.After(100 * time.Millisecond):
	}
}
