package world

import "k8s.io/apimachinery/pkg/labels"

// NodeSelector says by labels which nodes may host the addresses of an EgressIP or an EgressService. The zero one
// matches all.
type NodeSelector struct {
	Labels labels.Selector
	// Problem says why the selector could not be read. Then it is not known which nodes it matches.
	Problem string
}

// SelectsNode says whether a node may host the addresses. A selector that could not be read matches none.
func (s NodeSelector) SelectsNode(n *Node) bool {
	return s.Problem == "" && (s.Labels == nil || s.Labels.Matches(labels.Set(n.Labels)))
}

// String is the selector as kubectl takes it, "" if it matches all nodes.
func (s NodeSelector) String() string {
	if s.Labels == nil {
		return ""
	}
	return s.Labels.String()
}

func (s NodeSelector) sameSelector(o NodeSelector) bool {
	return s.Problem == o.Problem && s.String() == o.String()
}
