package simulate

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/egret-net/egret/api/v1"
)

// setTraffic creates or changes an EgressIPTraffic of destinations by their names. It has its name as label.
func (s *Sim) setTraffic(name string, destinations []string) {
	s.tellsApart = true
	o := get[*v1.EgressIPTraffic](s.api, "egressiptraffics", name)
	if o == nil {
		o = &v1.EgressIPTraffic{}
		o.Name, o.Labels = name, map[string]string{"traffic": name}
	}
	o.Generation++
	o.Spec.DestinationNetworks = nil
	for _, destination := range destinations {
		addrs, is := outside[destination]
		if !is {
			panic(fmt.Sprintf("no such destination: %q", destination))
		}
		for _, ip := range addrs {
			network := v1.CIDR(fmt.Sprintf("%v/%d", ip, ip.BitLen()))
			o.Spec.DestinationNetworks = append(o.Spec.DestinationNetworks, network)
		}
	}
	s.api.put("egressiptraffics", o)
}

// narrow has an EgressIP serve the destinations of some EgressIPTraffics alone; of none: all destinations.
func (s *Sim) narrow(name string, traffics []string) {
	o := s.api.egressIP(name)
	if o == nil {
		return
	}
	o.Generation++
	o.Spec.TrafficSelector = nil
	if len(traffics) > 0 {
		o.Spec.TrafficSelector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
			{Key: "traffic", Operator: metav1.LabelSelectorOpIn, Values: traffics}}}
	}
	s.api.put("egressips", o)
}
