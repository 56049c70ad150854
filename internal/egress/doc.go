// Package egress is what all features have in common that decide about the source of pods' packets: sets of pods, the
// leak filter, paused egress, what is inside the cluster, and packets that another holder is to have.
//
// In: a world, and which pod or address it is about. Out: rows. Rows of the same kind are the same whichever feature
// claims them.
package egress
