package deploy_test

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	flowcontrolv1 "k8s.io/api/flowcontrol/v1"

	"github.com/egret-net/egret/deploy"
)

// serviceAccountsPrecedence is that of Kubernetes' schema for all service accounts. Those with less come before it.
const serviceAccountsPrecedence = 9000

// TestRequestsHaveSeatsOfTheirOwn: what our service accounts ask for waits behind nobody else's requests, and leases go
// where Kubernetes' own go.
func TestRequestsHaveSeatsOfTheirOwn(t *testing.T) {
	var accounts []*corev1.ServiceAccount
	var schemas []*flowcontrolv1.FlowSchema
	levels := map[string]*flowcontrolv1.PriorityLevelConfiguration{}
	for _, object := range decodeAll(t, deploy.Manifests, "*.yaml") {
		switch o := object.(type) {
		case *corev1.ServiceAccount:
			accounts = append(accounts, o)
		case *flowcontrolv1.FlowSchema:
			schemas = append(schemas, o)
		case *flowcontrolv1.PriorityLevelConfiguration:
			levels[o.Name] = o
		}
	}
	slices.SortFunc(schemas, func(a, b *flowcontrolv1.FlowSchema) int {
		return int(a.Spec.MatchingPrecedence - b.Spec.MatchingPrecedence)
	})
	if len(accounts) < 2 {
		t.Fatalf("%d service accounts", len(accounts))
	}
	for _, a := range accounts {
		for resource, want := range map[string]string{"leases": "leader-election", "pods": "egret", "events": "egret"} {
			i := slices.IndexFunc(schemas, func(s *flowcontrolv1.FlowSchema) bool { return takes(s, a.Name, resource) })
			if i < 0 || schemas[i].Spec.MatchingPrecedence >= serviceAccountsPrecedence {
				t.Errorf("%s of %s share the seats of all service accounts", resource, a.Name)
				continue
			}
			if have := schemas[i].Spec.PriorityLevelConfiguration.Name; have != want {
				t.Errorf("%s of %s have the seats of %s, want %s", resource, a.Name, have, want)
			}
		}
	}
	own := levels["egret"]
	if own == nil || own.Spec.Limited == nil || *own.Spec.Limited.NominalConcurrencyShares == 0 {
		t.Errorf("priority level egret has no seats: %+v", own)
	}
}

// takes reports whether a schema is for requests for a resource in our namespace.
func takes(s *flowcontrolv1.FlowSchema, account, resource string) bool {
	return slices.ContainsFunc(s.Spec.Rules, func(r flowcontrolv1.PolicyRulesWithSubjects) bool {
		return slices.ContainsFunc(r.Subjects, func(s flowcontrolv1.Subject) bool {
			return s.ServiceAccount != nil && s.ServiceAccount.Name == account
		}) && slices.ContainsFunc(r.ResourceRules, func(r flowcontrolv1.ResourcePolicyRule) bool {
			return slices.Contains(r.Resources, "*") || slices.Contains(r.Resources, resource)
		})
	})
}
