package kube

import (
	"fmt"

	egretv1 "github.com/egret-net/egret/api/egret/v1"
)

// reportable shortens what the schema of EgressNode would refuse, and the rest of the report with it. What is left out of holding
// counts as not held: the problem that says so tells people what to do.
func reportable(s *egretv1.EgressNodeStatus) {
	s.AgentVersion = characters(s.AgentVersion, egretv1.MaxAgentVersion)
	if n := len(s.Holding); n > egretv1.MaxHolding {
		s.Holding = s.Holding[:egretv1.MaxHolding]
		text := fmt.Sprintf("the node holds %d egress IPs and can report %d: give it fewer, by more egress nodes", n, egretv1.MaxHolding)
		s.Problems = append([]string{text}, s.Problems...)
	}
	s.Steers = s.Steers[:min(len(s.Steers), egretv1.MaxSteers)]
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
