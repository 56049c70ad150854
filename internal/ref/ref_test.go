package ref_test

import (
	"testing"

	"github.com/egret-net/egret/internal/ref"
)

// TestKeys: a key and a kind make the object whose key it is.
func TestKeys(t *testing.T) {
	for key, want := range map[string]ref.Object{
		"web":         {Kind: ref.EgressIP, Name: "web"},
		"default/web": {Kind: ref.EgressIP, Namespace: "default", Name: "web"},
	} {
		have := ref.Of(ref.EgressIP, key)
		if have != want || have.Key() != key || have.String() != "EgressIP/"+key {
			t.Errorf("%s: have %#v, %s", key, have, have)
		}
	}
}
