package networks

import (
	"cmp"
	"time"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/egret-net/egret/internal/world"
)

// Request is a UserDefinedNetwork, or a ClusterUserDefinedNetwork, which has no namespace.
type Request struct {
	Namespace, Name, UID, Version string
	Created                       time.Time
	Generation                    int64
	Deleting                      bool
	// Protected: it has the finalizer that keeps it while pods use its network. Finalizers are those of others.
	Protected  bool
	Finalizers []string
	// Selector is a ClusterUserDefinedNetwork's.
	Selector labels.Selector
	Config   Config
	// Unserved says what of the request Egret does not serve, and Problem what is wrong with it; "": nothing.
	Unserved, Problem string
	Conditions        []world.Condition
}

// Key is "namespace/name", or "name".
func (r *Request) Key() string {
	if r.IsCluster() {
		return r.Name
	}
	return r.Namespace + "/" + r.Name
}

// IsCluster says whether it is a ClusterUserDefinedNetwork.
func (r *Request) IsCluster() bool { return r.Namespace == "" }

// Kind is that of its table.
func (r *Request) Kind() world.Kind {
	if r.IsCluster() {
		return world.KindClusterNetwork
	}
	return world.KindUserNetwork
}

func (r *Request) sameRequest(o *Request) bool {
	return r.UID == o.UID && r.Generation == o.Generation && r.Deleting == o.Deleting && r.sameDecided(o)
}

// sameDecided compares all that is decided about requests.
func (r *Request) sameDecided(o *Request) bool {
	return r.Protected == o.Protected && world.SameConditions(r.Conditions, o.Conditions)
}

// CompareAge orders requests, the oldest first.
func (r *Request) CompareAge(o *Request) int {
	return cmp.Or(r.Created.Compare(o.Created), cmp.Compare(r.Key(), o.Key()))
}

// Protection is the status that is decided of a request: whether it has the finalizer.
type Protection bool

func decidesRequest() world.Decides[Request] {
	return world.Decides[Request]{
		UID: func(r *Request) string { return r.UID },
		Over: func(shown *Request, d world.Decision) *Request {
			out := *shown
			out.Conditions = world.ConditionsOver(shown.Conditions, d.Conditions)
			if protected, decided := d.Status.(Protection); decided {
				out.Protected = bool(protected)
			}
			return &out
		},
		Same: (*Request).sameDecided,
	}
}
