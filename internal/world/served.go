package world

import (
	"net/netip"
	"slices"
	"strings"
	"time"
)

// ConditionServed of a Service, as api/v1 documents it: the controller's record of what the Service gets.
const ConditionServed = "egret.k8s.ovn.org/Served"

// mostServed bounds the addresses and ports that are recorded of a Service. Their text has room in a condition.
const mostServed = 512

// FormatServed writes the first addresses and ports of a list as the message of condition Served.
func FormatServed(list []Frontend) string {
	var texts []string
	for _, f := range list[:min(len(list), mostServed)] {
		texts = append(texts, f.String())
	}
	return strings.Join(texts, ", ")
}

// servedFrontends returns the addresses and ports that condition Served lists, and since when the list is what it is:
// of two Services that list the same one, the later list is right, for the controller no longer sees what the other one
// asks for. It leaves out unreadable entries.
func (s *Service) servedFrontends() (list map[Frontend]bool, since time.Time) {
	c := s.servedCondition()
	if c.Status != "True" || c.Since.IsZero() {
		return nil, time.Time{}
	}
	list = map[Frontend]bool{}
	for text := range strings.SplitSeq(c.Message, ", ") {
		address, protocol, _ := strings.Cut(text, "/")
		if at, err := netip.ParseAddrPort(address); err == nil {
			list[Frontend{at.Addr(), protocol, at.Port()}] = true
		}
		if len(list) == mostServed {
			break
		}
	}
	return list, c.Since
}

func (s *Service) servedCondition() Condition {
	if s == nil {
		return Condition{}
	}
	if i := slices.IndexFunc(s.Conditions, func(c Condition) bool { return c.Type == ConditionServed }); i >= 0 {
		return s.Conditions[i]
	}
	return Condition{}
}
