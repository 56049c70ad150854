package object_test

import (
	"testing"

	"github.com/egret-net/egret/internal/object"
)

// TestKeys: a key and a kind make the object whose key it is.
func TestKeys(t *testing.T) {
	for key, want := range map[string]object.Ref{
		"web":         {Kind: object.EgressIP, Name: "web"},
		"default/web": {Kind: object.EgressIP, Namespace: "default", Name: "web"},
	} {
		have := object.Of(object.EgressIP, key)
		if have != want || have.Key() != key || have.String() != "EgressIP/"+key {
			t.Errorf("%s: have %#v, %s", key, have, have)
		}
	}
}
