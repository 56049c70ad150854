package kube

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/egret-net/egret/api/v1"
	"github.com/egret-net/egret/internal/plan"
	"github.com/egret-net/egret/internal/ref"
	"github.com/egret-net/egret/internal/world"
)

// EgressService is an EgressService as the world has it.
func EgressService(o *v1.EgressService) *world.EgressService {
	s := &world.EgressService{
		Namespace: o.Namespace, Name: o.Name, UID: string(o.UID), Created: o.CreationTimestamp.Time,
		Generation: o.Generation, Version: o.ResourceVersion,
	}
	var err error
	if s.SourceIPBy, err = sourceIPBy(o.Spec.SourceIPBy); err != nil {
		s.Problems = append(s.Problems, err.Error())
	}
	if s.Table, err = routingTable(o.Spec.Network); err != nil {
		s.Problems = append(s.Problems, err.Error())
	}
	s.Nodes = hostSelector(&o.Spec.NodeSelector)
	s.DropWhenUnassigned, s.UnassignedProblem = whenUnassigned(o.Annotations)
	readHosting(s, &o.Status)
	s.Altered = !equality.Semantic.DeepEqual(EgressServiceStatus(s), o.Status)
	return s
}

func sourceIPBy(m v1.SourceIPMode) (world.SourceIPBy, error) {
	switch m {
	case v1.SourceIPLoadBalancer, "":
		return world.SourceLoadBalancerIP, nil
	case v1.SourceIPNetwork:
		return world.SourceNetwork, nil
	}
	return 0, fmt.Errorf("spec.sourceIPBy: %q: write LoadBalancerIP or Network", plainText(string(m)))
}

// localTable is iproute2's name of plan.LocalTable.
const localTable = "local"

// maxTableName is the CRD's bound of spec.network.
const maxTableName = 63

// tableName is what the CRD takes of spec.network.
var tableName = regexp.MustCompile(`^[0-9A-Za-z_][0-9A-Za-z_.-]*$`)

// routingTable reads what the CRD lets pass; digits alone are a number.
func routingTable(text string) (world.RoutingTable, error) {
	number, err := strconv.ParseUint(text, 10, 32)
	if number > plan.MostTable {
		err = strconv.ErrRange
	}
	switch {
	case text == "":
		return world.RoutingTable{}, nil
	case plan.IsReserved(uint32(number)) || text == localTable:
		return world.RoutingTable{}, fmt.Errorf("spec.network: %q has the host's own addresses, or is Egret's: write "+
			"another routing table", plainText(text))
	case err == nil && number > 0 && text[0] != '0':
		return world.RoutingTable{Number: uint32(number)}, nil
	case len(text) <= maxTableName && tableName.MatchString(text) && !numeric.MatchString(text):
		return world.RoutingTable{Name: text}, nil
	}
	return world.RoutingTable{}, fmt.Errorf("spec.network: %q is no routing table: write its number, from 1 to "+
		"2097151, or the name of a VRF or of a table in rt_tables", plainText(text))
}

// numeric is what ip-rule(8) would take for a number, in one base or another.
var numeric = regexp.MustCompile(`^([0-9]+|0[xX].*)$`)

func hostSelector(s *metav1.LabelSelector) world.NodeSelector {
	nodes, err := metav1.LabelSelectorAsSelector(s)
	if err != nil {
		return world.NodeSelector{Problem: plainText(fmt.Sprintf("spec.nodeSelector: %v", err))}
	}
	return world.NodeSelector{Labels: nodes}
}

// readHosting leaves out entries that are not addresses: the controller rewrites the status.
func readHosting(s *world.EgressService, o *v1.EgressServiceStatus) {
	if o.Host == world.HostAll || isName(o.Host) {
		s.Host = o.Host
	}
	for _, text := range o.SourceIPs {
		if a, err := parseAddr(text); err == nil && isName(s.Host) && !s.HasItems(world.FamilyOf(a)) {
			s.Items = append(s.Items, world.Assignment{Node: s.Host, IP: a})
		}
	}
	for _, i := range o.Items {
		if a, err := parseAddr(i.SourceIP); err == nil && s.Gives(world.Assignment{Node: i.Node, IP: a}) {
			s.Given = appendGiven(s.Given, i.Node, a, i.Since)
		}
	}
	for _, l := range o.Leaving {
		if a, err := parseAddr(l.SourceIP); err == nil && isName(l.Node) {
			s.Leaving = append(s.Leaving, world.Leaving{Node: l.Node, IP: a, Since: l.Since.Time,
				Given: ref.SinceTime(l.Given.Time)})
		}
	}
	s.InForce, s.Conditions = inForce(o.InForce), convertConditions(o.Conditions)
}

// EgressServiceStatus is the status that says what a world's EgressService says.
func EgressServiceStatus(s *world.EgressService) v1.EgressServiceStatus {
	o := v1.EgressServiceStatus{Host: s.Host, InForce: familiesOf(s.InForce),
		Conditions: statusConditions(s.Conditions)}
	for _, ip := range s.Sources() {
		o.SourceIPs = append(o.SourceIPs, ip.String())
	}
	o.AssignedSourceIPs = strings.Join(o.SourceIPs, ",")
	for _, g := range s.Given {
		o.Items = append(o.Items, v1.EgressServiceStatusItem{Node: g.Node, SourceIP: g.IP.String(),
			Since: metav1.NewMicroTime(g.Since.Time())})
	}
	for _, l := range s.Leaving {
		o.Leaving = append(o.Leaving, v1.EgressServiceLeaving{Node: l.Node, SourceIP: l.IP.String(),
			Since: metav1.NewMicroTime(l.Since), Given: metav1.NewMicroTime(l.Given.Time())})
	}
	return o
}
