package networks_test

import (
	"testing"

	"github.com/egret-net/egret/internal/networks"
)

// TestRequestNames: the names of networks of objects, and no others.
func TestRequestNames(t *testing.T) {
	for name, want := range map[string]bool{
		"shop_mine": true, "cluster_udn_blue": true, "a.b-c_d": true, "shop": false, "_": false, "shop_": false,
		"_mine": false, "a_b_c": false, "cluster_udn_": false, "cluster_udn_a_b": false, "": false,
	} {
		if have := networks.IsRequestName(name); have != want {
			t.Errorf("%q: %t", name, have)
		}
	}
}
