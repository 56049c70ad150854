package e2e

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/egret-net/egret/internal/sandbox"
)

// TestReadyz: every agent and controller answers at /readyz that it is ready, the controller that stands by, too. An
// agent that starts while a part of OVN does not run says what is missing, so that a rollout stops there; it is ready
// when that part is back.
func TestReadyz(t *testing.T) {
	c := theCluster(t)
	c.alikeInBoth(t)
	for i, m := range c.nodes {
		c.awaitsReadyz(t, m, sandbox.AgentMetricsPort, http.StatusOK, "ok\n")
		if i < sandbox.ControllerNodes {
			c.awaitsReadyz(t, m, sandbox.ControllerMetricsPort, http.StatusOK, "ok\n")
		}
	}
	node := c.nodes[0]
	for process, name := range map[string]string{"ovn-controller": "ovn-controller",
		"ovsdb-nb": "ovsdb-server (OVN_Northbound)"} {
		c.stopsProcess(t, node, process)
		within(t, soon, func() error { return c.KillProcess(t.Context(), node.Name, "egret-node") })
		took := c.awaitsReadyz(t, node, sandbox.AgentMetricsPort, http.StatusServiceUnavailable, "process/"+name+": ")
		t.Logf("an agent that starts without %s says so after %v", process, took)
		if err := c.StartProcess(t.Context(), node.Name, process); err != nil {
			t.Fatal(err)
		}
		took = c.awaitsReadyz(t, node, sandbox.AgentMetricsPort, http.StatusOK, "ok\n")
		t.Logf("with %s it is ready after %v", process, took)
	}
	within(t, podsTimeout, func() error { return c.isReady(node.Name) })
}

// stopsProcess ends a process of a node for the rest of the test at most.
func (c *cluster) stopsProcess(t *testing.T, node sandbox.Member, process string) {
	t.Helper()
	t.Cleanup(func() {
		if err := c.StartProcess(context.Background(), node.Name, process); err != nil {
			t.Error(err)
		}
	})
	if err := c.StopProcess(t.Context(), node.Name, process); err != nil {
		t.Fatal(err)
	}
}

// awaitsReadyz asks a program of a node whether it is ready until the answer is the expected one.
func (c *cluster) awaitsReadyz(t *testing.T, m sandbox.Member, port, status int, text string) time.Duration {
	t.Helper()
	return within(t, podsTimeout, func() error {
		answer, err := clientIn(m.Name).Get(url(m.IPs[0], port, "/readyz"))
		if err != nil {
			return err
		}
		defer answer.Body.Close()
		said, err := io.ReadAll(answer.Body)
		if err == nil && (answer.StatusCode != status || !strings.Contains(string(said), text)) {
			err = fmt.Errorf("/readyz of %s at port %d: %s %q, want %d %q", m.Name, port, answer.Status, said, status,
				text)
		}
		return err
	})
}
