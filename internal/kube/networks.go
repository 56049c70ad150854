package kube

import (
	"encoding/json"
	"errors"
	"maps"
	"slices"

	v1 "github.com/egret-net/egret/api/v1"
	"github.com/egret-net/egret/internal/ref"
)

// byNetwork are the annotations of a Node that are a JSON object with a key a network, of which only the default one's
// key is written here: the others are somebody else's. The controller writes all keys of the node's subnets.
var byNetwork = []string{
	v1.AnnotationNodeGatewayRouterLRPIfaddrs, v1.AnnotationL3GatewayConfig, v1.AnnotationNodeMgmtPortMACAddresses,
}

// networksByName is what such an annotation says of each network, as it is written there; nil if it is no JSON object.
func networksByName(text string) map[string]json.RawMessage {
	var out map[string]json.RawMessage
	if json.Unmarshal([]byte(text), &out) != nil {
		return nil
	}
	return out
}

// ofDefault reads what an annotation says of the default network into v. Other networks' entries are not read.
func ofDefault(text string, v any) error {
	all := networksByName(text)
	if all == nil {
		return errors.New("no JSON object")
	}
	own, there := all[ref.DefaultNetwork]
	if !there {
		return nil
	}
	return json.Unmarshal(own, v)
}

// otherNetworks are the annotations with a key a network, without the default network's; those that say nothing else
// are left out.
func otherNetworks(annotations map[string]string) map[string]string {
	var out map[string]string
	for _, key := range byNetwork {
		others := networksByName(annotations[key])
		if delete(others, ref.DefaultNetwork); len(others) == 0 {
			continue
		}
		if out == nil {
			out = map[string]string{}
		}
		out[key] = toJSON(others)
	}
	return out
}

// MergeNetworks returns the annotations to write: have, with the networks that set names replaced by those of set.
func MergeNetworks(have, set map[string]string) map[string]string {
	out := maps.Clone(set)
	for key, text := range set {
		others := networksByName(have[key])
		if others == nil || !slices.Contains(byNetwork, key) {
			continue
		}
		maps.Copy(others, networksByName(text))
		out[key] = toJSON(others)
	}
	return out
}
