package settings

import (
	"flag"
	"fmt"
	"slices"
	"strings"
)

// flagByKey has the keys of deploy/cluster's ConfigMap, and the flag that each one sets where a program has it.
var flagByKey = map[string]string{
	"KUBERNETES_SERVICE_HOST": "api-server-host",
	"KUBERNETES_SERVICE_PORT": "api-server-port",
	"CLUSTER_SUBNETS":         "cluster-subnets",
	"SERVICE_SUBNETS":         "service-subnets",
	"JOIN_SUBNET_V4":          "gateway-v4-join-subnet",
	"JOIN_SUBNET_V6":          "gateway-v6-join-subnet",
	"TRANSIT_SUBNET_V4":       "cluster-manager-v4-transit-subnet",
	"TRANSIT_SUBNET_V6":       "cluster-manager-v6-transit-subnet",
	"SLOT_SUBNET_V4":          "egressip-v4-slot-subnet",
	"SLOT_SUBNET_V6":          "egressip-v6-slot-subnet",
	"MASQUERADE_SUBNET_V4":    "gateway-v4-masquerade-subnet",
	"MASQUERADE_SUBNET_V6":    "gateway-v6-masquerade-subnet",
	"MTU":                     "mtu",
	"ENCAP_PORT":              "encap-port",
	"GATEWAY_MODE":            "gateway-mode",
	"GATEWAY_INTERFACE":       "gateway-interface",
	"DATAPATH":                "datapath",
	"HEALTHCHECK_PORT":        "egressip-node-healthcheck-port",
	"HEALTHCHECK_TLS_KEY":     "nb-client-privkey",
	"HEALTHCHECK_TLS_CERT":    "nb-client-cert",
	"HEALTHCHECK_TLS_CA":      "nb-client-cacert",
	"HEALTHCHECK_TLS_NAME":    "nb-cert-common-name",
	"AGENT_LEASE_DURATION":    "agent-lease-duration",
	"REACHABILITY_TIMEOUT":    "egressip-reachability-total-timeout",
	"REACHABILITY_WITNESSES":  "egressip-reachability-witnesses",
	"METRICS_TLS_KEY":         "node-server-privkey",
	"METRICS_TLS_CERT":        "node-server-cert",
	"METRICS_TLS_CLIENT_CA":   "metrics-client-cacert",
	"LOG_FORMAT":              "log-format",
}

// FlagOf returns the flag that a key of the ConfigMap sets, or "".
func FlagOf(key string) string { return flagByKey[key] }

// environmentPrefix begins the names of the variables that deploy/cluster makes of the ConfigMap's keys.
const environmentPrefix = "EGRET_SETTING_"

// FromEnvironment sets the flags that the command line left alone to what variables of the environment say. A key with
// an empty value, or one that is not there, leaves the default. Flags are parsed before.
func FromEnvironment(f *flag.FlagSet, environment []string) error {
	given := givenFlags(f)
	for _, variable := range environment {
		name, value, _ := strings.Cut(variable, "=")
		key, is := strings.CutPrefix(name, environmentPrefix)
		if !is {
			continue
		}
		flag, known := flagByKey[key]
		if !known {
			return fmt.Errorf("ConfigMap egret-system/egret has the key %s, which is not a setting of this version: "+
				"correct its name, or remove it. docs/reference.md has all settings", key)
		}
		if value == "" || given[flag] || f.Lookup(flag) == nil { // a key may be for another program
			continue
		}
		if err := f.Set(flag, value); err != nil {
			return fmt.Errorf("ConfigMap egret-system/egret, %s %q: %w: see --%s", key, value, err, flag)
		}
	}
	return nil
}

// NameKeys adds to an error the keys of the ConfigMap that set the flags which the error names.
func NameKeys(err error) error {
	var keys []string
	for key, flag := range flagByKey {
		if err != nil && strings.Contains(err.Error(), "--"+flag) && !strings.Contains(err.Error(), key) {
			keys = append(keys, key)
		}
	}
	if len(keys) == 0 {
		return err
	}
	slices.Sort(keys)
	return fmt.Errorf("%w (in ConfigMap egret-system/egret: %s)", err, strings.Join(keys, ", "))
}

// givenFlags returns the names of the flags that have been set.
func givenFlags(f *flag.FlagSet) map[string]bool {
	given := map[string]bool{}
	f.Visit(func(g *flag.Flag) { given[g.Name] = true })
	return given
}
