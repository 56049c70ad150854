package kube

import (
	"fmt"

	egretv1 "github.com/egret-net/egret/api/egret/v1"
)

// reportable shortens what the schema of EgressNode would refuse, and the rest of the report with it. What is left out of holding
// counts as not held, and of what is left out of steers nobody knows where it is led: the problems that say so tell people what to do.
func reportable(s *egretv1.EgressNodeStatus) {
	s.AgentVersion = characters(s.AgentVersion, egretv1.MaxAgentVersion)
	if n := len(s.Holding); n > egretv1.MaxHolding {
		s.Holding = s.Holding[:egretv1.MaxHolding]
		text := fmt.Sprintf("the node holds %d egress IPs and can report %d: give it fewer, by more egress nodes", n, egretv1.MaxHolding)
		s.Problems = append([]string{text}, s.Problems...)
	}
	if n := len(s.Steers); n > egretv1.MaxSteers {
		s.Steers = s.Steers[:egretv1.MaxSteers]
		text := fmt.Sprintf("the node leads its pods to %d holders of egress IPs and can report %d: run fewer selected pods on it", n, egretv1.MaxSteers)
		s.Problems = append([]string{text}, s.Problems...)
	}
	s.Conflicts = s.Conflicts[:min(len(s.Conflicts), egretv1.MaxConflicts)]
	if n := len(s.Problems); n > egretv1.MaxProblems {
		kept := egretv1.MaxProblems - 1
		s.Problems = append(s.Problems[:kept:kept], fmt.Sprintf("and %d problems more: see the agent's log", n-kept))
	}
	for i, p := range s.Problems {
		s.Problems[i] = characters(p, egretv1.MaxProblemLength)
	}
}

// characters is the start of a text, with an ellipsis in the place of the rest.
func characters(s string, limit int) string {
	const more = "..."
	r := []rune(s)
	if len(r) <= limit {
		return s
	}
	return string(r[:limit-len(more)]) + more
}
