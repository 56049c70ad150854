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

// asks has a Service ask for another address.
func (a *api) asks(name, externalIP string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	s := a.services["shop/"+name].DeepCopy()
	s.Spec.ExternalIPs = []string{externalIP}
	a.showService(s)
}

// refused is what a Service's conditions say that is not its record.
func (a *api) refused(name string) string { return a.says(name, false) }

// served is what a Service's record says.
func (a *api) served(name string) string { return a.says(name, true) }

func (a *api) says(name string, record bool) string {
	a.mu.Lock()
	defer a.mu.Unlock()
	var said []string
	for _, c := range a.services["shop/"+name].Status.Conditions {
		if record == (c.Type == v1.ConditionServed) {
			said = append(said, c.Type+"="+string(c.Status)+" "+c.Reason+": "+c.Message)
		}
	}
	return strings.Join(said, "\n")
}

// Of two Services that ask for one address the younger one is told why it does not get it, once, until the older one
// goes. What both get is recorded, with one write each time it changes, and written again where somebody removes it.
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
			kind+"172.18.0.2 is an address of node n1, and stays that: use a node port, or another address, or have "+
				"an administrator annotate the node with "+v1.AnnotationExternalIPs+"=true",
			func() string { return a.refused("node") })
		eventually(t, "events", v1.ReasonRefused, func() string { return a.reasons("young") })
		if said := a.refused("old"); said != "" {
			t.Errorf("the older one is told %q", said)
		}
		a.asks("old", "192.0.2.8")
		eventually(t, "condition of the younger", "", func() string { return a.refused("young") })
		if n := a.written("services/shop/young"); n != 2 {
			t.Errorf("%d writes of the younger, want 2", n)
		}
		const record = v1.ConditionServed + "=True " + v1.ReasonServed + ": "
		eventually(t, "record of the younger", record+"192.0.2.7:80/tcp", func() string { return a.served("young") })
		eventually(t, "record of the older", record+"192.0.2.8:80/tcp", func() string { return a.served("old") })
		if n := a.written("services/shop/old"); n != 2 {
			t.Errorf("%d writes of the older, want 2", n)
		}
		a.putService(aService("young", 1, "10.96.0.2", "192.0.2.7")) // as who writes the whole status over
		eventually(t, "record of the younger, again", record+"192.0.2.7:80/tcp",
			func() string { return a.served("young") })
		a.putService(aService("plain", 1, "10.96.0.4"))
		time.Sleep(time.Second)
		if n := a.written("services/shop/plain"); n != 0 {
			t.Errorf("%d writes of a Service without such addresses, want none", n)
		}
		if said := a.reasons("young"); said != v1.ReasonRefused {
			t.Errorf("events of the younger: %s", said)
		}
	})
}
