package crdtest_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/egret-net/egret/api/v1"
	"github.com/egret-net/egret/internal/crdtest"
)

func traffic(spec string) string {
	return "{apiVersion: k8s.ovn.org/v1, kind: EgressIPTraffic, metadata: {name: e}, spec: " + spec + "}"
}

func networks(list ...string) string {
	quoted, _ := json.Marshal(append([]string{}, list...))
	return traffic(fmt.Sprintf("{destinationNetworks: %s}", quoted))
}

func manyNetworks(n int) []string {
	var list []string
	for i := range n {
		list = append(list, fmt.Sprintf("fd00:0000:0000:0000:0000:0000:%04x:0000/112", i))
	}
	return list
}

func TestAcceptedTraffic(t *testing.T) {
	crd := crdtest.Load(t, "egressiptraffics")
	for name, object := range map[string]string{
		"both families":    networks("10.20.0.0/16", "fd00:20::/64"),
		"no network":       networks(),
		"host bits":        networks("10.20.7.9/16"),
		"everything":       networks("0.0.0.0/0", "::/0"),
		"one address":      networks("203.0.113.7/32"),
		"repeated":         networks("10.20.0.0/16", "10.20.0.0/16"),
		"long spelling":    networks("fd00:0020:0000:0000:0000:0000:0000:0000/128"),
		"as many as there": networks(manyNetworks(10000)...),
	} {
		t.Run(name, func(t *testing.T) {
			if have := crd.Refusals(crdtest.Object(t, object)); len(have) > 0 {
				t.Errorf("refused: %v", have[:min(len(have), 3)])
			}
		})
	}
}

func TestRefusedTraffic(t *testing.T) {
	crd := crdtest.Load(t, "egressiptraffics")
	const notNetwork = "is not a network: write an IPv4 or IPv6 prefix"
	for name, c := range map[string]struct{ object, want string }{
		"a name":       {networks("10.0.0.0/8", "web"), `spec.destinationNetworks[1]: Invalid value: "web": ` + notNetwork},
		"an address":   {networks("10.0.0.1"), notNetwork},
		"a range":      {networks("10.0.0.1-10.0.0.9"), notNetwork},
		"too long":     {networks("10.0.0.0/33"), notNetwork},
		"leading zero": {networks("010.0.0.0/8"), notNetwork},
		"IPv4-mapped":  {networks("::ffff:10.0.0.0/104"), notNetwork},
		"zone":         {networks("fe80::%eth0/64"), notNetwork},
		"empty":        {networks(""), notNetwork},
		"a long text":  {networks(strings.Repeat("1", 44)), "may not be more than 43"},
		"too many":     {networks(manyNetworks(10001)...), "must have at most 10000 items"},
		"no field":     {traffic("{}"), "should have at least 1 properties"},
		"null":         {traffic("{destinationNetworks: null}"), "spec.destinationNetworks"},
		"no spec":      {"{apiVersion: k8s.ovn.org/v1, kind: EgressIPTraffic, metadata: {name: e}}", "spec: Required value"},
	} {
		t.Run(name, func(t *testing.T) {
			have := strings.Join(crd.Refusals(crdtest.Object(t, c.object)), "\n")
			if !strings.Contains(have, c.want) {
				t.Errorf("want a refusal with %q, have %.300q", c.want, have)
			}
		})
	}
}

// TestTrafficRow: as kubectl get shows it, and no field of the type is missing in the CRD.
func TestTrafficRow(t *testing.T) {
	crd := crdtest.Load(t, "egressiptraffics")
	object := asMap(t, &v1.EgressIPTraffic{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1.GroupVersion.String(), Kind: "EgressIPTraffic"},
		ObjectMeta: metav1.ObjectMeta{Name: "e"},
		Spec:       v1.EgressIPTrafficSpec{DestinationNetworks: []v1.CIDR{"10.20.0.0/16", "fd00:20::/64"}},
	})
	if unknown := crd.Unknown(object); len(unknown) > 0 {
		t.Errorf("the CRD lacks %v: run go generate -C api ./...", unknown)
	}
	if have, want := crd.Heading(), "egressiptraffics eipt | DestinationNetworks | Age"; have != want {
		t.Errorf("heading\nhave %s\nwant %s", have, want)
	}
	if have, want := crd.Row(t, object), `e | ["10.20.0.0/16","fd00:20::/64"] | <nil>`; have != want {
		t.Errorf("row\nhave %s\nwant %s", have, want)
	}
}
