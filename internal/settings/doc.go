// Package settings is what the programs share of their command lines: the flags about reachability, about
// metrics and about the cluster's ranges, and the file of --config-file.
//
// In: a flag set, and an INI file as OVN-Kubernetes has it. Out: the values of the flags; the command line beats the
// file, and the file beats the defaults.
package settings
