package settings

// inConfigMap are the keys of deploy/cluster's ConfigMap that say what a flag of egret-node does.
var inConfigMap = map[string]string{
	"CLUSTER_SUBNETS":      "cluster-subnets",
	"SERVICE_SUBNETS":      "service-subnets",
	"JOIN_SUBNET_V4":       "gateway-v4-join-subnet",
	"JOIN_SUBNET_V6":       "gateway-v6-join-subnet",
	"TRANSIT_SUBNET_V4":    "cluster-manager-v4-transit-subnet",
	"TRANSIT_SUBNET_V6":    "cluster-manager-v6-transit-subnet",
	"SLOT_SUBNET_V4":       "egressip-v4-slot-subnet",
	"SLOT_SUBNET_V6":       "egressip-v6-slot-subnet",
	"MASQUERADE_SUBNET_V4": "gateway-v4-masquerade-subnet",
	"MASQUERADE_SUBNET_V6": "gateway-v6-masquerade-subnet",
	"MTU":                  "mtu",
	"ENCAP_PORT":           "encap-port",
	"GATEWAY_MODE":         "gateway-mode",
	"GATEWAY_INTERFACE":    "gateway-interface",
	"DATAPATH":             "datapath",
}

// FlagOf is the flag that a key of that ConfigMap is about, of those that say what plans look like; "" of another.
func FlagOf(key string) string { return inConfigMap[key] }
