package networks

import (
	"cmp"
	"time"

	"github.com/egret-net/egret/internal/world"
)

// Definition is a NetworkAttachmentDefinition.
type Definition struct {
	Namespace, Name, UID, Version string
	Created                       time.Time
	Deleting                      bool
	// Protected: it has the finalizer that keeps it while pods use its network. Finalizers are those of others.
	Protected  bool
	Finalizers []string
	// Owner is the request that it was made for, by its own word; zero: an administrator wrote it.
	Owner Owner
	// Labelled: it has the label of those that were made for a request.
	Labelled bool
	// Served: it describes a primary network of pods, as Config. Problem says why Egret cannot serve that; "": nothing
	// is wrong with the definition by itself.
	Served  bool
	Config  Config
	Problem string
	// Number is what the controller gave to the network.
	Number Number
	// Unwanted: the controller has decided that it must go.
	Unwanted bool
}

// Owner names a request: its kind in the API, its name, and its UID.
type Owner struct{ Kind, Name, UID string }

// Number is a network's number, and the name that it was given for; zero: none.
type Number struct {
	ID   int
	Name string
}

// Key is "namespace/name".
func (d *Definition) Key() string { return d.Namespace + "/" + d.Name }

// Counts says whether the definition is a network's. An agent asks nothing else: the controller alone gives numbers,
// and has looked at all else before.
func (d *Definition) Counts() bool {
	return d.Served && d.Problem == "" && d.Number.ID > 0 && d.Number.Name == d.Config.Name
}

func (d *Definition) sameDefinition(o *Definition) bool {
	return d.UID == o.UID && d.Deleting == o.Deleting && d.Created.Equal(o.Created) && d.sameDecided(o)
}

// sameDecided compares all that is decided about definitions.
func (d *Definition) sameDecided(o *Definition) bool {
	return d.Owner == o.Owner && d.Labelled == o.Labelled && d.Served == o.Served && d.Problem == o.Problem &&
		d.Config.Equal(o.Config) && d.Number == o.Number && d.Protected == o.Protected && d.Unwanted == o.Unwanted
}

// CompareAge orders definitions, the oldest first.
func (d *Definition) CompareAge(o *Definition) int {
	return cmp.Or(d.Created.Compare(o.Created), cmp.Compare(d.Key(), o.Key()))
}

func decidesDefinition() world.Decides[Definition] {
	return world.Decides[Definition]{
		UID: func(d *Definition) string { return d.UID },
		Make: func(_ string, decision world.Decision) *Definition {
			if d := decision.Status.(*Definition); !d.Unwanted {
				return d
			}
			return nil
		},
		Over: func(shown *Definition, decision world.Decision) *Definition {
			out, d := *shown, decision.Status.(*Definition)
			out.Number, out.Protected, out.Unwanted = d.Number, d.Protected, d.Unwanted
			if d.Labelled { // nothing else is decided of what an administrator wrote
				out.Owner, out.Labelled, out.Config = d.Owner, d.Labelled, d.Config
				out.Served, out.Problem = d.Served, d.Problem
			}
			return &out
		},
		Same: (*Definition).sameDecided,
	}
}
