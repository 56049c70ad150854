package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/egret-net/egret/internal/sandbox"
	"github.com/egret-net/egret/internal/world"
)

// running is the sandbox of this run; nil where the machine or the environment does not allow one.
var running *cluster

// whyNot says why there is no sandbox; TestMain sets it with running.
var whyNot = "these tests start a cluster of their own: run them as root with EGRET_E2E=1"

func TestMain(m *testing.M) {
	code, err := runAll(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, "e2e:", err)
		os.Exit(1)
	}
	os.Exit(code)
}

// theCluster is the sandbox that all tests of a run share.
func theCluster(t *testing.T) *cluster {
	t.Helper()
	if running == nil {
		t.Skip(whyNot)
	}
	if running.Options().MetalLB {
		t.Skip("MetalLB takes the addresses that this test may give Services: run it without EGRET_E2E_METALLB")
	}
	if len(running.nodes) < 3 {
		t.Skip("needs three nodes: run it without EGRET_E2E_NODES")
	}
	running.tellsWhoWasHeard(t)
	return running
}

// theTwoNodes is a sandbox that has no more nodes, for the tests of that.
func theTwoNodes(t *testing.T) *cluster {
	t.Helper()
	if running == nil {
		t.Skip(whyNot)
	}
	if len(running.nodes) != 2 {
		t.Skip("needs a sandbox of two nodes: EGRET_E2E_NODES=2")
	}
	running.tellsWhoWasHeard(t)
	return running
}

// theBalanced is the same with MetalLB in it, for the tests of that.
func theBalanced(t *testing.T) *cluster {
	t.Helper()
	if running == nil {
		t.Skip(whyNot)
	}
	if !running.Options().MetalLB {
		t.Skip("needs a sandbox with MetalLB: EGRET_E2E_METALLB=1")
	}
	running.tellsWhoWasHeard(t)
	return running
}

func runAll(m *testing.M) (code int, err error) {
	if os.Getenv("EGRET_E2E") != "1" {
		return m.Run(), nil
	}
	o, err := options()
	if err != nil {
		return 1, err
	}
	if whyNot = lacking(o); whyNot != "" {
		return m.Run(), nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), upTimeout)
	defer cancel()
	code = 1
	if running, err = start(ctx, o); err == nil {
		code = m.Run()
	}
	if os.Getenv("EGRET_E2E_KEEP") == "1" {
		return code, err
	}
	return code, errors.Join(err, sandbox.Down(o), nothingLeft(o))
}

// options are those of the sandbox that the environment asks for.
func options() (sandbox.Options, error) {
	o := sandbox.Defaults()
	o.GatewayMode = sandbox.GatewayMode(orElse(os.Getenv("EGRET_E2E_MODE"), "shared"))
	o.IPFamily = sandbox.IPFamily(orElse(os.Getenv("EGRET_E2E_FAMILY"), "dual"))
	o.Name = "e2e-" + string(o.GatewayMode)
	if o.MetalLB = os.Getenv("EGRET_E2E_METALLB") == "1"; o.MetalLB {
		o.Name += "-metallb"
	}
	if o.IPFamily != sandbox.Dual {
		o.Name, o.Settings = o.Name+"-"+string(o.IPFamily), otherSettings
	}
	var err error
	if o.Nodes, err = strconv.Atoi(orElse(os.Getenv("EGRET_E2E_NODES"), "3")); err != nil {
		return o, fmt.Errorf("EGRET_E2E_NODES: %w", err)
	}
	if o.Nodes != 3 {
		o.Name += "-" + strconv.Itoa(o.Nodes)
	}
	o.Name = orElse(os.Getenv("EGRET_E2E_NAME"), o.Name)
	o.SecondaryNetworks = 2
	port, err := strconv.Atoi(orElse(os.Getenv("EGRET_E2E_HEALTHCHECK_PORT"), "0"))
	if err != nil {
		return o, fmt.Errorf("EGRET_E2E_HEALTHCHECK_PORT: %w", err)
	}
	o.HealthcheckPort = port
	bin, err := filepath.Abs(orElse(os.Getenv("EGRET_E2E_BIN"), "../../bin"))
	if err != nil {
		return o, err
	}
	o.BinDir = bin
	return o, o.Validate()
}

const (
	otherMTU       = 1340
	otherEncapPort = world.GenevePort + 1
)

// otherSettings are of sandboxes with one family: everything that a cluster may choose and the others leave as it is.
var otherSettings = `
egressip-v4-slot-subnet=100.104.0.0/13
egressip-v6-slot-subnet=fd96:18::/29
[default]
mtu=` + strconv.Itoa(otherMTU) + `
encap-port=` + strconv.Itoa(otherEncapPort) + `
[gateway]
v4-join-subnet=100.65.0.0/16
v6-join-subnet=fd99::/64
v4-masquerade-subnet=169.254.170.0/29
v6-masquerade-subnet=fd6a::/125
[clustermanager]
v4-transit-subnet=100.89.0.0/16
v6-transit-subnet=fd9a::/64
`

func orElse(value, otherwise string) string {
	if value == "" {
		return otherwise
	}
	return value
}

// lacking says what keeps a sandbox from being started, or "".
func lacking(o sandbox.Options) string {
	if os.Geteuid() != 0 {
		return "a sandbox needs root: run the tests as root"
	}
	for _, program := range []string{"egret-sandbox", "egret-controlplane", "egret-node", "egret-controller",
		"egret-cni", "kubectl-egret"} {
		if _, err := os.Stat(filepath.Join(o.BinDir, program)); err != nil {
			return fmt.Sprintf("%s is missing: run make build", filepath.Join(o.BinDir, program))
		}
	}
	return ""
}
