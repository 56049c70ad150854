package node

import (
	"encoding/json"
	"net/netip"
	"reflect"
	"testing"

	egretv1 "github.com/egret-net/egret/api/egret/v1"
	"github.com/egret-net/egret/internal/kube"
	"github.com/egret-net/egret/internal/world"
)

// TestWholePatch: the patch names every field of the status, so that nothing of a former report stays.
func TestWholePatch(t *testing.T) {
	h := &world.Holding{Node: "n1", BootID: "boot", Holds: map[string][]netip.Addr{}}
	text, err := wholePatch(kube.EgressNode(h, "uid", "devel", nil))
	if err != nil {
		t.Fatal(err)
	}
	var patch struct {
		Status map[string]any `json:"status"`
	}
	if err := json.Unmarshal(text, &patch); err != nil {
		t.Fatal(err)
	}
	fields := reflect.TypeFor[egretv1.EgressNodeStatus]()
	if len(patch.Status) != fields.NumField() {
		t.Errorf("the patch has %d fields of %d: %s", len(patch.Status), fields.NumField(), text)
	}
	if v, there := patch.Status["holding"]; !there || v != nil {
		t.Errorf("holding is %v, want null: %s", v, text)
	}
}
