package flow

import (
	"errors"
	"fmt"
	"strings"

	"github.com/egret-net/egret/internal/plan"
	"github.com/egret-net/egret/internal/plane"
)

// checkFlow says why a flow would be something else to ovs-ofctl than it is in the plan. A line is a flow, # begins a
// comment, and the first "action" in it ends the match (ovs-ofctl(8), "Flow Syntax"), wherever it stands.
func checkFlow(f plan.Flow, actions string) error {
	match := strings.ToLower(f.Match)
	const separators = " \"';\\#" // of lines, and of a match from its actions
	err := errors.Join(plane.CheckDevice(f.Bridge), plane.CheckText("match", f.Match, separators),
		plane.CheckText("actions", actions, separators))
	switch {
	case err != nil:
		return err
	case actions == "":
		return errors.New("a flow without actions")
	case strings.Contains(match, "action"):
		return errors.New("the match has actions in it")
	}
	for part := range strings.SplitSeq(match, ",") {
		if key, _, _ := strings.Cut(part, "="); part == "" && match != "" || ours[key] {
			return fmt.Errorf("the match has %q in it, which is not a match's", part)
		}
	}
	return nil
}

// ours are the fields of a flow that the plane itself writes.
var ours = map[string]bool{"cookie": true, "table": true, "priority": true}
