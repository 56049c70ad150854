package demo

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

// answer is one connection of a pod: the source that the server saw, or why there was none.
type answer struct {
	source  netip.Addr
	failure string
}

// row is what one destination saw of one pod.
type row struct {
	pod, node, destination string

	want     []netip.Addr // the sources that are right
	mayMiss  bool         // a connection may fail, such as while an address moves; a wrong source is wrong all the same
	answers  []answer
	awaiting bool // not tried yet
}

// problemText says what is wrong; empty if the row is right.
func (r row) problemText() string {
	wrong := func(a answer) bool { return a.failure == "" && !slices.Contains(r.want, a.source) }
	failed := func(a answer) bool { return a.failure != "" }
	switch {
	case slices.ContainsFunc(r.answers, wrong):
		return "want " + joinAlternatives(r.want)
	case !slices.ContainsFunc(r.answers, func(a answer) bool { return !failed(a) }):
		return "no connection, want " + joinAlternatives(r.want)
	case !r.mayMiss && slices.ContainsFunc(r.answers, failed):
		return "not every connection was answered"
	}
	return ""
}

// seenText lists what was seen, each with its number, sources in order and failures last: "172.18.0.33 x5, 172.18.0.44
// x3".
func (r row) seenText() string {
	count := map[answer]int{}
	for _, a := range r.answers {
		count[a]++
	}
	kinds := make([]answer, 0, len(count))
	for a := range count {
		kinds = append(kinds, a)
	}
	slices.SortFunc(kinds, func(a, b answer) int {
		if c := strings.Compare(a.failure, b.failure); c != 0 {
			return c
		}
		return a.source.Compare(b.source)
	})
	var texts []string
	for _, a := range kinds {
		what := a.failure
		if what == "" {
			what = a.source.String()
		}
		if count[a] > 1 {
			what = fmt.Sprintf("%s x%d", what, count[a])
		}
		texts = append(texts, what)
	}
	return strings.Join(texts, ", ")
}

// unusedAddresses are the egress IPs that no row showed: with several addresses, each must carry connections.
func unusedAddresses(rows []row, want []netip.Addr) []netip.Addr {
	seen := map[netip.Addr]bool{}
	for _, r := range rows {
		for _, a := range r.answers {
			seen[a.source] = true
		}
	}
	return slices.DeleteFunc(slices.Clone(want), func(a netip.Addr) bool { return seen[a] })
}

func joinAlternatives(addrs []netip.Addr) string {
	var texts []string
	for _, a := range addrs {
		texts = append(texts, a.String())
	}
	return strings.Join(texts, " or ")
}
