package networks

import (
	"strings"

	"github.com/egret-net/egret/internal/world"
)

// NamedNetworks returns the names of all networks that an object names. The object may be refused, not served, being
// deleted, or without a number yet. A definition that cannot be read has the name in the annotation of its number.
func NamedNetworks(w *world.View) map[string]struct{} {
	out := map[string]struct{}{}
	for _, k := range []world.Kind{world.KindUserNetwork, world.KindClusterNetwork} {
		for r := range world.Each[Request](w, k) {
			out[r.Config.Name] = struct{}{}
		}
	}
	for d := range world.Each[Definition](w, world.KindDefinition) {
		out[d.Config.Name], out[d.Number.Name] = struct{}{}, struct{}{}
	}
	return out
}

// IsRequestName reports whether the network of a request can have a name. Names of Kubernetes objects have no "_",
// which separates them here. An administrator may give a definition another name.
func IsRequestName(name string) bool {
	if object, cluster := strings.CutPrefix(name, ClusterPrefix); cluster {
		return object != "" && !strings.Contains(object, "_")
	}
	namespace, object, joined := strings.Cut(name, "_")
	return joined && namespace != "" && object != "" && !strings.Contains(object, "_")
}
