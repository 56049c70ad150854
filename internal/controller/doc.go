// Package controller decides for the cluster: ids and subnets of nodes, and which node hosts which egress IP.
//
// In: changes of the world from package kube, and whether this process leads. Out: annotations of nodes, statuses of EgressIPs, and
// Events, through a Writer. One loop owns the world; it decides anew from the whole world, and nothing is remembered that a new
// leader would miss: what was decided is in the objects.
package controller
