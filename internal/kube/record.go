package kube

import (
	"encoding/json"
	"errors"

	"github.com/egret-net/egret/internal/world"
)

// recorded is annotation recorded-addresses.
type recorded struct {
	Addresses  []string `json:"addresses"`
	MACAddress string   `json:"mac-address,omitempty"`
}

// RecordAnnotation is the text of annotation recorded-addresses.
func RecordAnnotation(r world.Record) string {
	out := recorded{Addresses: []string{}, MACAddress: r.MAC.String()}
	for _, a := range r.Addrs {
		out.Addresses = append(out.Addresses, a.String())
	}
	return toJSON(out)
}

func readRecord(n *world.Node, text string) error {
	var r recorded
	if err := json.Unmarshal([]byte(text), &r); err != nil {
		return err
	}
	list, tooMany := atMost(r.Addresses, maxRecorded)
	as, err := parseAddrs(list)
	n.Record.Addrs = as
	if r.MACAddress != "" {
		var unreadable error
		n.Record.MAC, unreadable = world.ParseHardwareAddr(r.MACAddress)
		err = errors.Join(err, unreadable)
	}
	return errors.Join(tooMany, err)
}
