package explain

import (
	"fmt"
	"slices"
	"strings"

	"github.com/egret-net/egret/internal/world"
)

// Agents' pods, as deploy/cluster makes them.
const (
	agentNamespace = "egret-system"
	agentLabel     = "app"
	agentApp       = "egret-node"
)

// proofCommands are the commands that show what nodes have of all this: the pod's, and those that the packet may leave
// by.
func (a Answer) proofCommands() string {
	w, p := a.scope.w, a.Packet
	agents := agentsOf(w)
	command := func(node string, args ...string) string {
		text := "egret-node " + strings.Join(args, " ")
		if agent := agents[node]; agent != "" {
			return fmt.Sprintf("kubectl -n %s exec %s -c agent -- %s\n", agentNamespace, agent, text)
		}
		return fmt.Sprintf("as root on %s: %s\n", node, text)
	}
	out := command(a.Pod.Node, "trace", fmt.Sprintf("--protocol=%s", p.Proto), fmt.Sprintf("--port=%d", p.DstPort),
		a.Pod.Key(), p.Dst.String())
	if a.staysInside() {
		return out
	}
	claims := w.Claims(a.Pod, w.PrimaryNetwork(a.Pod.Namespace), world.FamilyOf(p.Dst))
	for _, node := range a.leaveBy(claims) {
		for _, c := range claims {
			out += command(node, "plan", "--diff", "--owner="+strings.ToLower(c.By.Kind)+"/"+c.By.Key())
		}
	}
	return out
}

// leaveBy are the pod's node, and those that the packet may leave by: where that is in doubt, those of who decides.
func (a Answer) leaveBy(claims []world.Claim) []string {
	nodes := []string{a.Pod.Node}
	for _, c := range claims {
		if len(a.Doubts) > 0 {
			nodes = append(nodes, namedBy(a.scope.w.PlacementOf(c.By.Key()))...)
		}
	}
	for _, e := range a.Ends {
		if len(a.Doubts) == 0 {
			nodes = append(nodes, e.Node)
		}
	}
	slices.Sort(nodes)
	return slices.Compact(nodes)
}

// agentsOf are the names of the agents' pods, by node.
func agentsOf(w *world.World) map[string]string {
	out := map[string]string{}
	for p := range w.EachPod() {
		if p.Namespace == agentNamespace && p.Labels[agentLabel] == agentApp && p.Running && !p.Terminating {
			out[p.Node] = p.Name
		}
	}
	return out
}
