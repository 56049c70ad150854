package kube

import (
	"testing"

	egretv1 "github.com/egret-net/egret/api/egret/v1"
	"github.com/egret-net/egret/internal/world"
)

// TestAgentPort: where an agent answers is read back; not when an older agent has written the object since, which
// leaves the field as it is, nor what is no port.
func TestAgentPort(t *testing.T) {
	own := EgressNode(&world.Holding{Node: "n1", BootID: "b", Port: 9413}, "", "v1", nil)
	for what, c := range map[string]struct {
		change func(*egretv1.EgressNodeStatus)
		want   uint16
	}{
		"its own":        {func(*egretv1.EgressNodeStatus) {}, 9413},
		"an older agent": {func(s *egretv1.EgressNodeStatus) { s.AgentVersion = "v1" }, 0},
		"no port":        {func(s *egretv1.EgressNodeStatus) { s.AgentPort = 70000 }, 0},
		"none":           {func(s *egretv1.EgressNodeStatus) { s.AgentPort = 0 }, 0},
	} {
		o := own.DeepCopy()
		if c.change(&o.Status); Holding(o).AnswersAt() != c.want {
			t.Errorf("%s: %d, want %d", what, Holding(o).AnswersAt(), c.want)
		}
	}
	if o := EgressNode(&world.Holding{Node: "n1", BootID: "b"}, "", "v1", nil); Holding(o).AnswersAt() != 0 {
		t.Error("an agent that answers nobody has a port")
	}
}
