package e2e

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/netip"
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
// controller's tokens and its kubelet's certificate, at the real API server; and a tenant, who has role edit in one
// namespace, or that and the one of EgressServices. Nothing is changed (dry run).
func TestStolenCredentials(t *testing.T) {
	c := theCluster(t)
	own, other := c.nodes[0], c.nodes[1]
	n := c.namespace(t, nil)
	n.runs(pod{name: "here", node: own}, pod{name: "there", node: other})
	c.egressIP(t, n.name, []netip.Addr{netip.MustParseAddr("192.0.2.77")}, selects(map[string]string{"of": "nobody"}),
		metav1.LabelSelector{})
	paths := objectsOf(own.Name, other.Name, n.name)
	for _, who := range []struct {
		name  string
		by    *caller
		tries []attempt
	}{
		{"agent", c.byToken(t, own, "node"), paths.ofAgent()},
		{"kubelet", c.byCertificate(t, own), paths.ofKubelet()},
		{"controller", c.byToken(t, own, "controller"), paths.ofController()},
		{"tenant", c.byTenant(t, n.name, "edit"), ofTenant(n.name, paths)},
		{"tenant with EgressServices", c.byTenant(t, n.name, "egret-egressservices-edit", "edit"),
			ofTenantWithEgressServices(n.name)},
	} {
		for _, a := range who.tries {
			t.Run(who.name+": "+a.name, func(t *testing.T) { a.judge(t, who.by) })
		}
	}
}

const egressLabel = `{"metadata":{"labels":{"k8s.ovn.org/egress-assignable":"x"}}}`

const serviceLabel = `{"metadata":{"labels":{"egress-service.k8s.ovn.org/shop-web":"x"}}}`

func labelled(key, value string) string { return string(labelPatch(map[string]string{key: value})) }

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

// byTenant has those of a user who has roles in one namespace. The last is edit, with which the wait ends: the API
// server learns of them in order.
func (c *cluster) byTenant(t *testing.T, namespace string, roles ...string) *caller {
	t.Helper()
	user := fmt.Sprint("egret-tenant-", len(roles))
	for _, role := range roles {
		o := &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Name: user + "-" + role},
			RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
			Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}}}
		_, err := c.api.RbacV1().RoleBindings(namespace).Create(t.Context(), o, metav1.CreateOptions{})
		must(t, err)
	}
	config := rest.CopyConfig(c.config)
	config.Impersonate = rest.ImpersonationConfig{UserName: user}
	by := c.calling(t, config)
	within(t, soon, func() error { // the API server's authorization learns of the role a moment later
		if code, said := by.dryRun(t, http.MethodGet, "/api/v1/namespaces/"+namespace+"/pods", ""); code >= 300 {
			return fmt.Errorf("%d: %s", code, said)
		}
		return nil
	})
	return by
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
