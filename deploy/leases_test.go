package deploy_test

import (
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/egret-net/egret/deploy"
)

// lease is an agent's Lease of a node; its holder is the node's agent, for a number of seconds.
func lease(name, holder string, seconds int64, changes ...change) *unstructured.Unstructured {
	spec := map[string]any{"holderIdentity": holder, "leaseDurationSeconds": seconds,
		"renewTime": "2026-01-01T00:00:00.000000Z"}
	o := changed("coordination.k8s.io/v1", "Lease", "egret-node-lease", name, spec, changes)
	return o
}

// TestLeasesOfAgents: an agent renews its own Lease and no other, least of all that of the controllers.
func TestLeasesOfAgents(t *testing.T) {
	j, n1 := newJudge(t), agentOf("n1")
	for name, u := range map[string]update{
		"made":    {n1, "leases", "", nil, lease("n1", "n1", 40, owned)},
		"renewed": {n1, "leases", "", lease("n1", "n1", 20), lease("n1", "n1", 3600, owned)},
		"by an administrator": {kubeletOf("n1"), "leases", "", lease("n1", "n1", 40, labelled),
			lease("n1", "x", 1, finalized)},
	} {
		if have := j.refusal(u); have != "" {
			t.Errorf("%s: refused: %s", name, have)
		}
	}
	elsewhere := func(o *unstructured.Unstructured) { o.SetNamespace("egret-system") }
	const only = "may renew the Lease egret-node-lease/n1 only"
	j.refusesAll(t, map[string]refused{
		"another's":      {update{n1, "leases", "", lease("n2", "n2", 40), lease("n2", "n2", 40, owned)}, only},
		"another's made": {update{n1, "leases", "", nil, lease("n2", "n1", 40)}, only},
		"of controllers": {update{n1, "leases", "", lease("egret-controller", "a", 40, elsewhere),
			lease("egret-controller", "n1", 40, elsewhere)}, only},
		"elsewhere":      {update{n1, "leases", "", nil, lease("n1", "n1", 40, elsewhere)}, only},
		"deleted":        {update{n1, "leases", "", lease("n1", "n1", 40), nil}, only},
		"unbound":        {update{agentOf(""), "leases", "", nil, lease("n1", "n1", 40)}, "names no node"},
		"of others":      {update{n1, "leases", "", nil, lease("n1", "n1", 40, ownedBy("n2"))}, "owned by its Node"},
		"kept":           {update{n1, "leases", "", nil, lease("n1", "n1", 40, finalized)}, "owned by its Node"},
		"labelled":       {update{n1, "leases", "", nil, lease("n1", "n1", 40, labelled)}, "owned by its Node"},
		"another holder": {update{n1, "leases", "", nil, lease("n1", "n2", 40)}, "for 20 to 3600 seconds"},
		"for ever":       {update{n1, "leases", "", nil, lease("n1", "n1", 3601)}, "for 20 to 3600 seconds"},
		"for a moment":   {update{n1, "leases", "", nil, lease("n1", "n1", 19)}, "for 20 to 3600 seconds"},
	})
}

// TestRightsToLeases: agents write in the namespace of their Leases alone, and controllers read there.
func TestRightsToLeases(t *testing.T) {
	have := map[string]string{}
	for _, object := range decodeAll(t, deploy.Manifests, "rbac-*.yaml") {
		r, is := object.(*rbacv1.Role)
		if !is {
			continue
		}
		for _, rule := range r.Rules {
			if slices.Contains(rule.Resources, "leases") {
				key := r.Namespace + "/" + r.Name
				have[key] = strings.TrimSpace(have[key] + " " + strings.Join(rule.Verbs, " "))
			}
		}
	}
	want := map[string]string{"egret-node-lease/egret-node": "create patch",
		"egret-node-lease/egret-controller": "list", "egret-system/egret-controller": "get update create"}
	for key, verbs := range want {
		if have[key] != verbs {
			t.Errorf("%s may %q Leases, want %q", key, have[key], verbs)
		}
	}
	if len(have) != len(want) {
		t.Errorf("have %v, want %v", have, want)
	}
}
