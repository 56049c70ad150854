// Package settings is what the programs share of their command lines: the flags about reachability, about metrics,
// about the API server and about the cluster's ranges, the keys of the ConfigMap, and the file of --config-file.
//
// In: a flag set, variables of the environment, and an INI file as OVN-Kubernetes has it. Out: the values of the flags.
// The command line beats the environment, which beats the file, and the file beats the defaults.
package settings
