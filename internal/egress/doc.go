// Package egress is the common part of all features that decide about the source of pods' packets: sets of pods, the
// leak filter, paused egress, the cluster's inside, and packets for another holder.
//
// In: a world, and which pod or address it is about. Out: rows. Rows of the same kind are the same whichever feature
// claims them.
package egress
