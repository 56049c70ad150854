package plan

import (
	"cmp"

	"github.com/egret-net/egret/internal/ref"
)

// Owner is on whose behalf a row is in a plan: one feature, for one object. It is a value to compare and to look up by;
// String is for people alone, and nothing reads it back.
type Owner struct {
	Feature string
	Object  ref.Object // zero where the feature compiles once for the node
}

// String is "feature/namespace/name", "feature/name", or "feature".
func (o Owner) String() string {
	if o.Object == (ref.Object{}) {
		return o.Feature
	}
	return o.Feature + "/" + o.Object.Key()
}

// Compare orders by feature, then by object.
func (o Owner) Compare(p Owner) int {
	return cmp.Or(cmp.Compare(o.Feature, p.Feature), o.Object.Compare(p.Object))
}

// claimant is who claims a row: its owner, or another one on its behalf.
type claimant struct {
	owner Owner
	by    Owner // zero: the owner itself
}

// compareOwner orders by owner, for of several claims that of the least owner stands.
func (c *claimant) compareOwner(d *claimant) int {
	return cmp.Or(c.owner.Compare(d.owner), c.by.Compare(d.by))
}
