// Package network makes networks of pods of what users ask for: UserDefinedNetworks, ClusterUserDefinedNetworks and
// NetworkAttachmentDefinitions.
//
// In: these objects and namespaces. Out, of the controller: a NetworkAttachmentDefinition in each namespace of a
// network, a number for each network, conditions and Events. Out, on every program: the networks of the world, which
// follow from the numbered definitions alone.
package network
