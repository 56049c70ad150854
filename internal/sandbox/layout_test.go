package sandbox

import (
	"flag"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/egret-net/egret/internal/sandbox/image"
	"github.com/egret-net/egret/internal/sandbox/nodeinit"
)

var update = flag.Bool("update", false, "write the golden files anew")

func options(change func(*Options)) Options {
	o := Defaults()
	o.StateDir, o.CacheDir, o.BinDir = "/state", "/cache", "/bin"
	if change != nil {
		change(&o)
	}
	return o
}

func TestAddresses(t *testing.T) {
	tests := map[IPFamily]string{
		IPv4: "egret-n1 172.18.0.2; egret-n2 172.18.0.3; egret-n3 172.18.0.4; egret-ext1 172.18.0.100; egret-ext2 " +
			"172.18.0.101; egret-cp 172.18.0.250; " +
			"gateway 172.18.0.1; dns 10.96.0.10; api https://172.18.0.250:6443; flags --cluster-subnets " +
			"10.244.0.0/16/24 --service-subnets 10.96.0.0/16",
		IPv6: "egret-n1 fc00:f853:ccd:e793::2; egret-n2 fc00:f853:ccd:e793::3; egret-n3 fc00:f853:ccd:e793::4; " +
			"egret-ext1 fc00:f853:ccd:e793::100; " +
			"egret-ext2 fc00:f853:ccd:e793::101; egret-cp fc00:f853:ccd:e793::250; gateway fc00:f853:ccd:e793::1; " +
			"dns fd00:10:96::a; " +
			"api https://[fc00:f853:ccd:e793::250]:6443; flags --cluster-subnets fd00:10:244::/48/64 " +
			"--service-subnets fd00:10:96::/112",
		Dual: "egret-n1 172.18.0.2,fc00:f853:ccd:e793::2; egret-n2 172.18.0.3,fc00:f853:ccd:e793::3; egret-n3 " +
			"172.18.0.4,fc00:f853:ccd:e793::4; " +
			"egret-ext1 172.18.0.100,fc00:f853:ccd:e793::100; egret-ext2 172.18.0.101,fc00:f853:ccd:e793::101; " +
			"egret-cp 172.18.0.250,fc00:f853:ccd:e793::250; " +
			"gateway 172.18.0.1,fc00:f853:ccd:e793::1; dns 10.96.0.10,fd00:10:96::a; api https://172.18.0.250:6443; " +
			"flags --cluster-subnets 10.244.0.0/16/24,fd00:10:244::/48/64 --service-subnets " +
			"10.96.0.0/16,fd00:10:96::/112",
	}
	for family, want := range tests {
		t.Run(string(family), func(t *testing.T) {
			l := newLayout(options(func(o *Options) { o.IPFamily = family }))
			var have []string
			for _, e := range append(append(l.nodeEndpoints(), l.hostEndpoints()...), l.controlPlane()) {
				have = append(have, e.name+" "+joinTexts(e.ips))
			}
			have = append(have, "gateway "+joinTexts(l.gatewayAddresses()), "dns "+joinTexts(l.dnsIPs()),
				"api "+l.apiURL(), "flags "+strings.Join(commonFlags(l)[:4], " "))
			if diff := cmp.Diff(want, strings.Join(have, "; ")); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestEveryMemberIsItsOwn(t *testing.T) {
	o := options(func(o *Options) {
		o.Nodes, o.ExternalHosts, o.IPFamily, o.SecondaryNetworks = maxNodes, maxHosts, Dual, maxSecondary
	})
	if err := o.Validate(); err != nil {
		t.Fatal(err)
	}
	l := newLayout(o)
	seen := map[string]string{}
	take := func(what, by string) {
		if other, taken := seen[what]; taken {
			t.Errorf("%s is both %s's and %s's", what, other, by)
		}
		seen[what] = by
	}
	for _, gw := range l.gatewayAddresses() {
		take(gw.String(), "the gateway")
	}
	take(hardwareAddr(0, gatewayNumber).String(), "the gateway")
	for _, e := range append(append(l.nodeEndpoints(), l.hostEndpoints()...), l.controlPlane()) {
		take(e.netns, e.name)
		take("port "+e.port, e.name)
		take(e.mac.String(), e.name)
		for _, link := range e.secondary {
			take("port "+link.port, e.name)
			take(link.mac.String(), e.name)
			for _, p := range link.ips {
				take(p.String(), e.name)
			}
		}
		for _, ip := range e.ips {
			take(ip.String(), e.name)
			if !l.withPrimaryLength(ip).Contains(l.gatewayAddresses()[0]) &&
				!l.withPrimaryLength(ip).Contains(l.gatewayAddresses()[1]) {
				t.Errorf("%s of %s is outside the primary network", ip, e.name)
			}
		}
	}
}

func TestNamesOfOneSandboxAreNotAnothers(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"a-n1", "a-fabric", "a-ext2", "a-cp", "a-n1-n1", "a-n1-cp", "b-n1", "a-nx", "xa-n1"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	have, err := namesIn(dir, netnsPattern("a"))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"a-cp", "a-ext2", "a-fabric", "a-n1"}, have); diff != "" {
		t.Error(diff)
	}
}

func TestOptionsThatCannotWork(t *testing.T) {
	for text, change := range map[string]func(*Options){
		`name "a/b"`:            func(o *Options) { o.Name = "a/b" },
		`name ""`:               func(o *Options) { o.Name = "" },
		"0 nodes":               func(o *Options) { o.Nodes = 0 },
		"91 nodes":              func(o *Options) { o.Nodes = 91 },
		"-1 external hosts":     func(o *Options) { o.ExternalHosts = -1 },
		"10 secondary networks": func(o *Options) { o.SecondaryNetworks = 10 },
		`gateway mode "both"`:   func(o *Options) { o.GatewayMode = "both" },
		"port 70000":            func(o *Options) { o.HealthcheckPort = 70000 },
		"timeout of -1 s":       func(o *Options) { o.ReachabilityTimeout = -1 },
		`IP family "6"`:         func(o *Options) { o.IPFamily = "6" },
		`pod network "x"`:       func(o *Options) { o.CNI = "x" },
		"MetalLB needs":         func(o *Options) { o.MetalLB, o.CNI = true, PTP },
		"absolute paths":        func(o *Options) { o.StateDir = "here" },
	} {
		if err := options(change).Validate(); err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("want an error with %q, have %v", text, err)
		}
	}
}

func TestNodeSubnets(t *testing.T) {
	l := newLayout(options(func(o *Options) { o.IPFamily = Dual }))
	for i, want := range []string{"10.244.7.0/24", "fd00:10:244:7::/64"} {
		have, err := l.pods[i].nodeSubnet(7)
		if err != nil || have != netip.MustParsePrefix(want) {
			t.Errorf("have %s, %v, want %s", have, err, want)
		}
	}
}

// Without Kubernetes a node has everything but the kubelet, and of the images the one that every pod is made with.
func TestNodeWithoutKubernetes(t *testing.T) {
	l := newLayout(options(func(o *Options) { o.NoKubernetes = true }))
	images := imageFiles(l.options)
	if len(images) != 1 || filepath.Base(images[0]) != image.Pause().File {
		t.Errorf("images %v, want that of pause", images)
	}
	text := unitTexts(nodeUnits(l, l.nodeEndpoints()[0], 1, "system", images, func(p string) bool {
		return p == "egret-node"
	}))
	if strings.Contains(text, "kubelet:") {
		t.Errorf("there is a kubelet:\n%s", text)
	}
	for _, want := range []string{"containerd", "import-pause", "ovs-vswitchd", "ovn-controller", "egret-node"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %s in\n%s", want, text)
		}
	}
}

func TestGolden(t *testing.T) {
	for _, family := range []IPFamily{IPv4, Dual} {
		l := newLayout(options(func(o *Options) { o.IPFamily = family }))
		ptp := newLayout(options(func(o *Options) { o.IPFamily, o.CNI = family, PTP }))
		conflist, err := ptpConflist(ptp, 2)
		if err != nil {
			t.Fatal(err)
		}
		all := func(string) bool { return true }
		golden(t, string(family)+"-kubelet.yaml", kubeletConfig("egret-n2", l.dnsIPs()))
		golden(t, string(family)+"-dns.yaml", dnsManifests(l))
		golden(t, string(family)+"-ptp.conflist", conflist)
		golden(t, string(family)+"-units.txt",
			unitTexts(nodeUnits(l, l.nodeEndpoints()[1], 2, "netdev", []string{"/none/pause.tar"}, all)))
		golden(t, string(family)+"-units-ptp.txt",
			unitTexts(nodeUnits(ptp, l.nodeEndpoints()[1], 2, "netdev", nil, all)))
	}
	golden(t, "containerd.toml", containerdConfig())
}

func TestControllersRunOnTheFirstTwoNodes(t *testing.T) {
	l := newLayout(options(nil))
	for number, want := range map[int]bool{1: true, 2: true, 3: false} {
		text := unitTexts(nodeUnits(l, l.nodeEndpoints()[number-1], number, "netdev", nil, func(string) bool {
			return true
		}))
		if have := strings.Contains(text, "egret-controller:"); have != want {
			t.Errorf("node %d: controller %t, want %t", number, have, want)
		}
		if have := len(identitiesOf(number)) == 2; have != want {
			t.Errorf("node %d: controller's token %t, want %t", number, have, want)
		}
	}
}

func unitTexts(units []nodeinit.Unit) string {
	var text strings.Builder
	for _, u := range units {
		fmt.Fprintf(&text, "%s:", u.Name)
		for _, a := range u.Args {
			if strings.HasPrefix(a, "-") {
				fmt.Fprintf(&text, "\n   ")
			}
			fmt.Fprintf(&text, " %s", a)
		}
		if u.Nice != 0 {
			fmt.Fprintf(&text, "\n  nice: %d", u.Nice)
		}
		for _, b := range u.Before {
			fmt.Fprintf(&text, "\n  before: %s", strings.Join(b.Args, " "))
		}
		fmt.Fprintf(&text, "\n  needs: %s\n", strings.Join(u.Needs, " "))
	}
	return text.String()
}

func golden(t *testing.T, name, have string) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		if err := writeFile(file, have, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), have); diff != "" {
		t.Errorf("%s (go test -update writes it anew):\n%s", file, diff)
	}
}
