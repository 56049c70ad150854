package e2e

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/egret-net/egret/internal/sandbox"
)

// TestStolenCredentials tries what somebody could do who has the credentials of one node: its agent's and its
// controller's tokens and its kubelet's certificate, at the real API server. Nothing is changed (dry run).
func TestStolenCredentials(t *testing.T) {
	c := theCluster(t)
	own, other := c.nodes[0], c.nodes[1]
	n := c.namespace(t, nil)
	n.runs(pod{name: "here", node: own}, pod{name: "there", node: other})
	agent, kubelet, controller := c.byToken(t, own, "node"), c.byCertificate(t, own), c.byToken(t, own, "controller")
	const (
		yes   = ""
		ours  = "a kubelet may not change them"
		rbac  = "cannot "
		nodes = "/api/v1/nodes/"
		egn   = "/apis/egret.k8s.ovn.org/v1/egressnodes"
		eip   = "/apis/k8s.ovn.org/v1/egressips"
	)
	pods := "/api/v1/namespaces/" + n.name + "/pods/"
	services := "/api/v1/namespaces/default/services/kubernetes"
	events := "/apis/events.k8s.io/v1/namespaces/default/events"
	networks := `{"default":{"ip_addresses":["10.244.0.9/24"],"mac_address":"0a:58:0a:f4:00:09"}}`
	for name, r := range map[string]struct {
		by         *caller
		verb, path string
		body, want string
	}{
		"agent: own host-cidrs": {agent, "PATCH", nodes + own.Name, annotation("k8s.ovn.org/host-cidrs",
			`["172.18.0.2/16"]`), yes},
		"agent: another's host-cidrs": {agent, "PATCH", nodes + other.Name,
			annotation("k8s.ovn.org/host-cidrs", `["172.18.0.2/16"]`), "its own Node only"},
		"agent: own host-cidrs, garbage": {agent, "PATCH", nodes + own.Name, annotation("k8s.ovn.org/host-cidrs",
			`["x"]`), "another form"},
		"agent: another's chassis": {agent, "PATCH", nodes + own.Name,
			annotation("k8s.ovn.org/node-chassis-id", other.Name), "its own name"},
		"agent: another's zone": {agent, "PATCH", nodes + own.Name, annotation("k8s.ovn.org/zone-name",
			other.Name), "its own name"},
		"agent: own id": {agent, "PATCH", nodes + own.Name, annotation("k8s.ovn.org/node-id",
			"9"), "allocated by egret-controller"},
		"agent: own record": {agent, "PATCH", nodes + own.Name,
			annotation("egret.k8s.ovn.org/recorded-addresses", `{"addresses":["172.18.0.2"]}`),
			"allocated by egret-controller"},
		"agent: own label": {agent, "PATCH", nodes + own.Name, egressLabel,
			"annotations of its Node and nothing else"},
		"agent: own Node's status": {agent, "PATCH", nodes + own.Name + "/status",
			annotation("k8s.ovn.org/node-id", "9"), rbac},
		"agent: own Node deleted": {agent, "DELETE", nodes + own.Name, "", rbac},
		"agent: own pod": {agent, "PATCH", pods + "here", annotation("k8s.ovn.org/pod-networks",
			networks), yes},
		"agent: own pod, garbage": {agent, "PATCH", pods + "here", annotation("k8s.ovn.org/pod-networks",
			"x"), "another form"},
		"agent: another's pod": {agent, "PATCH", pods + "there", annotation("k8s.ovn.org/pod-networks",
			networks), "pods of its own node only"},
		"agent: own pod deleted": {agent, "DELETE", pods + "here", "", rbac},
		"agent: own EgressNode": {agent, "PATCH", egn + "/" + own.Name, `{"status":{"problems":["x"]}}`,
			yes},
		"agent: own EgressNode, garbage": {agent, "PATCH", egn + "/" + own.Name,
			`{"status":{"holding":[{"egressIP":"e","ip":"x"}],"holdingCount":1}}`, "is not an IP address"},
		"agent: another's EgressNode": {agent, "PATCH", egn + "/" + other.Name,
			`{"status":{"problems":["x"]}}`, "may write the EgressNode"},
		"agent: EgressNode put":     {agent, "PUT", egn + "/" + own.Name, `{}`, rbac},
		"agent: EgressNode deleted": {agent, "DELETE", egn + "/" + own.Name, "", rbac},
		"agent: EgressIP":           {agent, "POST", eip, `{}`, rbac},
		"agent: EgressIP's status":  {agent, "PATCH", eip + "/e/status", `{}`, rbac},
		"agent: own Event":          {agent, "POST", events, eventOf("egret-node", own.Name), yes},
		"agent: another's Event": {agent, "POST", events, eventOf("egret-node", other.Name),
			"in its own name"},
		"agent: Secrets": {agent, "GET", "/api/v1/secrets", "", rbac},
		"agent: a token": {agent, "POST",
			"/api/v1/namespaces/egret-system/serviceaccounts/egret-controller/token", `{"spec":{}}`, rbac},
		"kubelet: own id": {kubelet, "PATCH", nodes + own.Name, annotation("k8s.ovn.org/node-id",
			"9"), ours},
		"kubelet: own id by status": {kubelet, "PATCH", nodes + own.Name + "/status",
			annotation("k8s.ovn.org/node-id", "9"), ours},
		"kubelet: own subnets": {kubelet, "PATCH", nodes + own.Name,
			annotation("k8s.ovn.org/node-subnets", `{"default":["10.244.9.0/24"]}`), ours},
		"kubelet: own host-cidrs": {kubelet, "PATCH", nodes + own.Name,
			annotation("k8s.ovn.org/host-cidrs", `["172.18.0.2/16"]`), ours},
		"kubelet: own record": {kubelet, "PATCH", nodes + own.Name,
			annotation("egret.k8s.ovn.org/recorded-addresses", `{"addresses":["172.18.0.2"]}`), ours},
		"kubelet: own chassis": {kubelet, "PATCH", nodes + own.Name,
			annotation("k8s.ovn.org/node-chassis-id", other.Name), ours},
		"kubelet: own label": {kubelet, "PATCH", nodes + own.Name, egressLabel,
			"whether its node hosts egress IPs"},
		"kubelet: own label by status": {kubelet, "PATCH", nodes + own.Name + "/status", egressLabel,
			"whether its node hosts egress IPs"},
		"kubelet: own Node, another's": {kubelet, "PATCH", nodes + own.Name, annotation("example.org/x", "x"),
			yes},
		"kubelet: another's Node": {kubelet, "PATCH", nodes + other.Name, annotation("example.org/x", "x"),
			"not allowed to modify node"},
		"kubelet: own Node's status": {kubelet, "PATCH", nodes + own.Name + "/status",
			`{"status":{"volumesInUse":[]}}`, yes},
		"kubelet: own Node deleted": {kubelet, "DELETE", nodes + own.Name, "", rbac},
		"kubelet: pod's addresses by status": {kubelet, "PATCH", pods + "here" + "/status",
			annotation("k8s.ovn.org/pod-networks", networks), ours},
		"kubelet: pod's status": {kubelet, "PATCH", pods + "here" + "/status",
			`{"status":{"message":"x"}}`, yes},
		"kubelet: another's pod": {kubelet, "PATCH", pods + "there" + "/status",
			`{"status":{"message":"x"}}`, "can only update pod status for pods with spec.nodeName set to itself"},
		"kubelet: own EgressNode": {kubelet, "PATCH", egn + "/" + own.Name,
			`{"status":{"problems":["x"]}}`, rbac},
		"kubelet: the agent's token": {kubelet, "POST",
			"/api/v1/namespaces/egret-system/serviceaccounts/egret-node/token", `{"spec":{}}`, "forbidden"},
		"controller: an id": {controller, "PATCH", nodes + other.Name,
			annotation("k8s.ovn.org/node-id", "9"), yes},
		"controller: an id, garbage": {controller, "PATCH", nodes + other.Name,
			annotation("k8s.ovn.org/node-id", "x"), "decimal number"},
		"controller: a record": {controller, "PATCH", nodes + other.Name,
			annotation("egret.k8s.ovn.org/recorded-addresses", `{"addresses":["172.18.0.99"]}`), yes},
		"controller: a record, garbage": {controller, "PATCH", nodes + other.Name,
			annotation("egret.k8s.ovn.org/recorded-addresses", `{"addresses":["x"]}`), "another form"},
		"controller: host-cidrs": {controller, "PATCH", nodes + other.Name,
			annotation("k8s.ovn.org/host-cidrs", `["172.18.0.2/16"]`), "allocates only"},
		"controller: label": {controller, "PATCH", nodes + other.Name, egressLabel,
			"may change labels egress-service.k8s.ovn.org/* only"},
		"controller: EgressService's label, with a value": {controller, "PATCH", nodes + other.Name, serviceLabel,
			"may change labels egress-service.k8s.ovn.org/* only"},
		"kubelet: EgressService's label": {kubelet, "PATCH", nodes + own.Name, serviceLabel,
			"a kubelet may not change them"},
		"agent: EgressService's label": {agent, "PATCH", nodes + own.Name, serviceLabel,
			"annotations of its Node and nothing else"},
		"controller: pod": {controller, "PATCH", pods + "here",
			annotation("k8s.ovn.org/pod-networks", networks), rbac},
		"controller: Service's condition": {controller, "PATCH", services + "/status",
			`{"status":{"conditions":[{"type":"x","status":"True","reason":"x","message":"","lastTransitionTime":"2026-01-01T00:00:00Z"}]}}`, "nothing else of it"},
		"controller: Service": {controller, "PATCH", services,
			`{"spec":{"externalIPs":["172.18.0.9"]}}`, rbac},
		"controller: EgressIP's spec":    {controller, "PATCH", eip + "/e", `{}`, rbac},
		"controller: EgressNode deleted": {controller, "DELETE", egn + "/" + other.Name, "", rbac},
		"controller: another's lease": {controller, "GET",
			"/apis/coordination.k8s.io/v1/namespaces/egret-system/leases/x", "", rbac},
		"controller: its lease": {controller, "GET",
			"/apis/coordination.k8s.io/v1/namespaces/egret-system/leases/egret-controller", "", yes},
		"controller: Event of a kubelet": {controller, "POST", events, eventOf("kubelet", own.Name),
			"in its own name"},
		"controller: Event of its own": {controller, "POST", events, eventOf("egret-controller", own.Name),
			yes},
		"controller: Node's status": {controller, "PATCH", nodes + other.Name + "/status", egressLabel,
			rbac},
		"controller: EgressIP's status, wrong": {controller, "PUT", eip + "/e/status", `{}`, rbac},
	} {
		t.Run(name, func(t *testing.T) {
			code, said := r.by.dryRun(t, r.verb, r.path, r.body)
			if admitted := code < 300; admitted != (r.want == yes) || !strings.Contains(said, r.want) {
				t.Errorf("%s %s: %d, want %q, have %s", r.verb, r.path, code, r.want, said)
			}
		})
	}
}

const egressLabel = `{"metadata":{"labels":{"k8s.ovn.org/egress-assignable":"x"}}}`

const serviceLabel = `{"metadata":{"labels":{"egress-service.k8s.ovn.org/shop-web":"x"}}}`

func annotation(key, value string) string {
	return fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, key, value)
}

func eventOf(reporter, instance string) string {
	return fmt.Sprintf(`{"apiVersion":"events.k8s.io/v1","kind":"Event","metadata":{"generateName":"x-","namespace":"default"},"eventTime":%q,"type":"Normal","reason":"Test",
		"action":"Test","regarding":{"kind":"Pod","namespace":"default","name":"x"},"reportingController":%q,"reportingInstance":%q}`,
		metav1.NowMicro().UTC().Format(metav1.RFC3339Micro), reporter, instance)
}

// caller asks the API server with one set of credentials.
type caller struct {
	base string
	http *http.Client
}

// byToken has those of one of Egret's programs on a node.
func (c *cluster) byToken(t *testing.T, n sandbox.Member, program string) *caller {
	t.Helper()
	token, err := os.ReadFile(filepath.Join(c.etc(n), program+".token"))
	if err != nil {
		t.Fatal(err)
	}
	config := rest.AnonymousClientConfig(c.config)
	config.BearerToken = string(token)
	return c.calling(t, config)
}

// byCertificate has the kubelet's.
func (c *cluster) byCertificate(t *testing.T, n sandbox.Member) *caller {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", filepath.Join(c.etc(n), "kubelet.kubeconfig"))
	if err != nil {
		t.Fatal(err)
	}
	config.Host = c.config.Host // the API server as this machine reaches it
	return c.calling(t, config)
}

func (c *cluster) calling(t *testing.T, config *rest.Config) *caller {
	t.Helper()
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	return &caller{c.config.Host, client}
}

// dryRun asks for a change that is judged and not made. It returns the status code and the answer.
func (c *caller) dryRun(t *testing.T, verb, path, body string) (code int, said string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), verb, c.base+path+"?dryRun=All",
		bytes.NewBufferString(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	if verb == http.MethodPatch {
		request.Header.Set("Content-Type", "application/merge-patch+json")
	}
	answer, err := c.http.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, string(text)
}

// TestUsersRoles: who has the cluster's role view may read what Egret does, and who has edit may write it, but not what
// the controller and the agents say.
func TestUsersRoles(t *testing.T) {
	c := theCluster(t)
	for role, may := range map[string]map[string]bool{
		"view": {"list egressips.k8s.ovn.org": true, "get egressnodes.egret.k8s.ovn.org": true,
			"create egressips.k8s.ovn.org": false},
		"edit": {"watch egressiptraffics.k8s.ovn.org": true, "create egressips.k8s.ovn.org": true,
			"update egressips.k8s.ovn.org/status": false, "patch egressnodes.egret.k8s.ovn.org": false},
		"admin": {"delete egressips.k8s.ovn.org": true, "delete egressnodes.egret.k8s.ovn.org": false},
	} {
		user := "egret-" + role
		c.binds(t, user, role)
		for what, want := range may {
			verb, resource, _ := strings.Cut(what, " ")
			within(t, soon, func() error {
				if have := c.may(t, user, verb, resource); have != want {
					return fmt.Errorf("who has role %s may %s: %t", role, what, have)
				}
				return nil
			})
		}
	}
}

// binds gives a user a role in the whole cluster until the test ends.
func (c *cluster) binds(t *testing.T, user, role string) {
	t.Helper()
	bindings := c.api.RbacV1().ClusterRoleBindings()
	o := &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: user},
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}}}
	_, err := bindings.Create(t.Context(), o, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = bindings.Delete(context.Background(), user, metav1.DeleteOptions{}) })
}

// may asks the API server whether a user may do something.
func (c *cluster) may(t *testing.T, user, verb, resource string) bool {
	t.Helper()
	name, group, _ := strings.Cut(resource, ".")
	group, sub, _ := strings.Cut(group, "/")
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{User: user,
		ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: verb, Group: group, Resource: name,
			Subresource: sub}}}
	out, err := c.api.AuthorizationV1().SubjectAccessReviews().Create(t.Context(), review, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return out.Status.Allowed
}
