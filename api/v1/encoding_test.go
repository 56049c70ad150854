package v1_test

import (
	"encoding/json"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/egret-net/egret/api/v1"
)

// TestSelectorsSurviveEncoding: {} and absent mean different things to the API server, so the required one is always
// written and the optional one only where it selects.
func TestSelectorsSurviveEncoding(t *testing.T) {
	text, err := json.Marshal(v1.EgressIPSpec{EgressIPs: []string{"172.18.0.33"}})
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"egressIPs":["172.18.0.33"],"namespaceSelector":{}}`
	if string(text) != want {
		t.Errorf("have %s, want %s", text, want)
	}
}

// TestNoNetworkIsNotNothing: an empty list is written as one, for the API server refuses a spec without it.
func TestNoNetworkIsNotNothing(t *testing.T) {
	text, err := json.Marshal(v1.EgressIPTrafficSpec{DestinationNetworks: []v1.CIDR{}})
	if want := `{"destinationNetworks":[]}`; err != nil || string(text) != want {
		t.Errorf("have %s, %v, want %s", text, err, want)
	}
}

// TestTrafficSelectorSurvivesEncoding: absent and {} mean different things.
func TestTrafficSelectorSurvivesEncoding(t *testing.T) {
	for want, selector := range map[string]*metav1.LabelSelector{
		`{"egressIPs":null,"namespaceSelector":{}}`:                      nil,
		`{"egressIPs":null,"namespaceSelector":{},"trafficSelector":{}}`: {},
	} {
		text, err := json.Marshal(v1.EgressIPSpec{TrafficSelector: selector})
		if err != nil || string(text) != want {
			t.Errorf("have %s, %v, want %s", text, err, want)
		}
	}
}
