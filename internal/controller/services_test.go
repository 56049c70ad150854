package controller_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	v1 "github.com/egret-net/egret/api/v1"
)

func aService(name string, age int, clusterIP string, externalIPs ...string) *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: types.UID("uid-" + name),
			CreationTimestamp: metav1.NewTime(time.Unix(int64(100000-age), 0))},
		Spec: corev1.ServiceSpec{ClusterIPs: []string{clusterIP}, ExternalIPs: externalIPs,
			Ports: []corev1.ServicePort{{Port: 80}}},
	}
}

// refused is what a Service's condition says.
func (a *api) refused(name string) string {
	a.mu.Lock()
	defer a.mu.Unlock()
	var said []string
	for _, c := range a.services["shop/"+name].Status.Conditions {
		said = append(said, c.Type+"="+string(c.Status)+" "+c.Reason+": "+c.Message)
	}
	return strings.Join(said, "\n")
}

// Of two Services that ask for one address the younger one is told why it does not get it, once, until the older one
// goes.
func TestServiceIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAPI(2 * time.Millisecond)
		a.putNode(aNode("n1", 2))
		a.putService(aService("old", 9, "10.96.0.1", "192.0.2.7"))
		a.putService(aService("young", 1, "10.96.0.2", "192.0.2.7"))
		a.putService(aService("node", 1, "10.96.0.3", "172.18.0.2"))
		start(t, a)
		const kind = v1.ConditionRefused + "=True " + v1.ReasonRefused + ": "
		eventually(t, "condition of the younger",
			kind+"192.0.2.7:80/tcp is served for Service shop/old, which comes first: give one of them another "+
				"address or port",
			func() string { return a.refused("young") })
		eventually(t, "condition of who asks for a node's address",
			kind+"172.18.0.2 is an address of node n1, and stays that: use a node port, or another address",
			func() string { return a.refused("node") })
		eventually(t, "events", v1.ReasonRefused, func() string { return a.reasons("young") })
		if said := a.refused("old"); said != "" {
			t.Errorf("the older one is told %q", said)
		}
		a.putService(aService("old", 9, "10.96.0.1", "192.0.2.8"))
		eventually(t, "condition of the younger", "", func() string { return a.refused("young") })
		if n := a.written("services/shop/young"); n != 2 {
			t.Errorf("%d writes of the younger, want 2", n)
		}
		if n := a.written("services/shop/old"); n != 0 {
			t.Errorf("%d writes of the older, want none", n)
		}
		if said := a.reasons("young"); said != v1.ReasonRefused {
			t.Errorf("events of the younger: %s", said)
		}
	})
}
