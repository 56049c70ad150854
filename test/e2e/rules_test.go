package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/egret-net/egret/api/v1"
)

// rules are numbers of rules by what they are. Law 2: none depends on how many pods are selected.
type rules map[string]string

// counts looks at one node. Flows of br-int are not among them: OVN writes each address of a set into flows of its own;
// nor those that the switch makes itself. Of the logical flows those count that name a set or a pretended pod:
// ovn-northd makes others for what pods of the system do meanwhile.
const counts = `
for t in Logical_Router Logical_Switch Logical_Router_Policy Logical_Router_Static_Route NAT QoS ACL Address_Set Load_Balancer; do
	echo "NB $t $(ovn-nbctl --bare --columns=_uuid list $t | grep -c .)"
done
echo "SB Logical_Flow $(ovn-sbctl --format=csv --columns=match,actions list Logical_Flow | grep -cE '[$]|10\.244\.99\.|fd00:10:244:99:')"
echo "flows breth0 $(ovs-ofctl dump-flows breth0 cookie=0xdeff105/0xffffffff | grep -c cookie)"
echo "rules nft $(nft -a list ruleset | grep -v elements | grep -c ' # handle ')"
echo "interfaces $(ovs-vsctl --bare --columns=_uuid list Interface | grep -c .)"
echo "routes ip $(ip route show table all | grep -c .)"
echo "routes ip6 $(ip -6 route show table all | grep -c .)"
echo "rules ip $(ip rule | grep -c .)"
echo "rules ip6 $(ip -6 rule | grep -c .)"
`

func (c *cluster) rules(t *testing.T, node string) rules {
	t.Helper()
	out := rules{}
	for line := range strings.Lines(c.on(t, node, "sh", "-c", counts)) {
		i := strings.LastIndex(line, " ")
		out[line[:i]] = strings.TrimSpace(line[i:])
	}
	return out
}

// logicalFlows are a node's, a line each.
func (c *cluster) logicalFlows(t *testing.T, node string) []string {
	t.Helper()
	return strings.Split(c.on(t, node, "ovn-sbctl", "--format=csv", "--no-headings",
		"--columns=pipeline,table_id,priority,match,actions", "list", "Logical_Flow"), "\n")
}

// alone waits until the namespaces of former tests have gone: a Service that goes with one takes rules away.
func (c *cluster) alone(t *testing.T) {
	t.Helper()
	within(t, podsTimeout, func() error {
		all, err := c.api.CoreV1().Namespaces().List(t.Context(), metav1.ListOptions{})
		if err != nil {
			return err
		}
		for _, n := range all.Items {
			if n.DeletionTimestamp != nil {
				return fmt.Errorf("namespace %s has not gone yet", n.Name)
			}
		}
		return nil
	})
}

// settledRules waits until the agent has carried out what came before.
func (c *cluster) settledRules(t *testing.T, node string) rules {
	t.Helper()
	last := c.rules(t, node)
	for range 20 {
		time.Sleep(500 * time.Millisecond)
		now := c.rules(t, node)
		if maps.Equal(last, now) {
			return now
		}
		last = now
	}
	t.Fatalf("the rules of %s do not come to rest: %v", node, last)
	return nil
}

// TestRulesDoNotGrow selects a pod for an EgressIP on the primary network and one for another on a second link, then
// twenty more for each: only members of sets are added.
func TestRulesDoNotGrow(t *testing.T) {
	c := theCluster(t)
	n := c.namespace(t, nil)
	c.labelEgress(t, c.nodes[1])
	fake := c.fakeNode(t)
	second := map[string]string{"app": "second"}
	n.runs(pod{name: "a", node: c.nodes[0], labels: web}, pod{name: "b", node: c.nodes[1], labels: web}, pod{name: "c",
		node: c.nodes[0], labels: second})
	n.pretend(pod{name: "first", labels: web}, fake, 200)
	n.pretend(pod{name: "first-second", labels: second}, fake, 100)
	c.egressIP(t, "rules", c.number(50), n.itself(), selects(web)).ready()
	c.egressIP(t, "rules-second", c.secondaryNumber(54), n.itself(), selects(second)).ready()
	n.from("a").to(c.outside(0)).soonArrivesAs(c.number(50)...)
	n.from("c").to(c.beside(0)).soonArrivesAs(c.secondaryNumber(54)...)
	for _, node := range c.nodes[:2] {
		within(t, soon, func() error { return c.members(node.Name, 100, 200) })
	}
	c.alone(t)
	before, flows := map[string]rules{}, map[string][]string{}
	for _, node := range c.nodes[:2] {
		before[node.Name], flows[node.Name] = c.settledRules(t, node.Name), c.logicalFlows(t, node.Name)
	}
	for i := range 20 {
		n.pretend(pod{name: fmt.Sprint("more-", i), labels: web}, fake, 201+i)
		n.pretend(pod{name: fmt.Sprint("more-second-", i), labels: second}, fake, 101+i)
	}
	within(t, soon, func() error { return c.members(c.nodes[1].Name, 120, 220) })
	for _, node := range c.nodes[:2] {
		after := c.settledRules(t, node.Name)
		if before[node.Name]["SB Logical_Flow"] == "0" {
			t.Errorf("node %s has no logical flow that names a set", node.Name)
		}
		if !maps.Equal(before[node.Name], after) {
			added := slices.DeleteFunc(c.logicalFlows(t, node.Name),
				func(f string) bool { return slices.Contains(flows[node.Name], f) })
			t.Errorf("node %s with 20 more pods selected for each: have %v, before %v; logical flows added:\n%s",
				node.Name, after, before[node.Name], strings.Join(added, "\n"))
		}
	}
	t.Logf("rules of the hosting node: %v", before[c.nodes[1].Name])
}

// fakeNode is a Node object without a kubelet; its pods have addresses of its subnets and nothing else.
func (c *cluster) fakeNode(t *testing.T) string {
	t.Helper()
	var subnets []string
	for _, ip := range c.nodes[0].IPs {
		subnets = append(subnets, netip.MustParsePrefix(pretended(ip.Is4(), 0)).String())
	}
	text, err := json.Marshal(map[string]any{"default": subnets})
	if err != nil {
		t.Fatal(err)
	}
	o := &corev1.Node{ObjectMeta: metav1.ObjectMeta{GenerateName: "fake-",
		Annotations: map[string]string{v1.AnnotationNodeSubnets: string(text)}}}
	if o, err = c.api.CoreV1().Nodes().Create(t.Context(), o, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.api.CoreV1().Nodes().Delete(context.Background(), o.Name, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	})
	return o.Name
}

// pretend makes a pod whose annotation says that it runs with this number in the pod subnets of the fake node.
func (n *namespace) pretend(p pod, node string, number int) {
	n.t.Helper()
	o := n.object(p)
	o.Spec.NodeName = node
	var ips []string
	for _, ip := range n.c.nodes[0].IPs {
		ips = append(ips, pretended(ip.Is4(), number))
	}
	networks, err := json.Marshal(map[string]any{"default": map[string]any{"ip_addresses": ips,
		"mac_address": "0a:58:0a:f4:63:01", "role": "primary"}})
	if err != nil {
		n.t.Fatal(err)
	}
	o.Annotations = map[string]string{v1.AnnotationPodNetworks: string(networks)}
	if _, err := n.c.api.CoreV1().Pods(n.name).Create(n.t.Context(), o, metav1.CreateOptions{}); err != nil {
		n.t.Fatal(err)
	}
}

// pretended is an address of the fake node's pod subnets, with their length.
func pretended(v4 bool, number int) string {
	if v4 {
		return fmt.Sprintf("10.244.99.%d/24", number)
	}
	return fmt.Sprintf("fd00:10:244:99::%d/64", number)
}

// members is nil if the pretended pods with these numbers are in sets of the hosting node.
func (c *cluster) members(node string, numbers ...int) error {
	if node != c.nodes[1].Name {
		return nil
	}
	out, err := c.feed(context.Background(), node, nil, "ovn-nbctl", "--bare", "--columns=addresses", "list",
		"Address_Set")
	if err != nil {
		return err
	}
	have := strings.Fields(out)
	for _, number := range numbers {
		if ip, _, _ := strings.Cut(pretended(c.nodes[0].IPs[0].Is4(), number), "/"); !slices.Contains(have, ip) {
			return fmt.Errorf("node %s has no set with %s", node, ip)
		}
	}
	return nil
}
