package plan

import "fmt"

// What the flows of the gateway bridge are made of: see feature gateway. Host and gateway routers share the node's
// addresses, and ct_mark in ZoneGateway tells whose a connection is.

// PatchPort is the network's patch port to the integration bridge; the plane puts the number in.
func (n Names) PatchPort() string { return "{patch}" }

// Commit remembers that the connection is the network's.
func (n Names) Commit() string { return commit(n.CTMark()) }

// CommitAs does the same, and translates the source to an address.
func (n Names) CommitAs(src string) string {
	return fmt.Sprintf("ct(commit,zone=%d,nat(src=%s),exec(set_field:%#x->ct_mark))", ZoneGateway, src, n.CTMark())
}

// ToOVN gives a new connection from outside to the network.
func (n Names) ToOVN() string { return n.Commit() + ",output:" + n.PatchPort() }

// CommitHost remembers that the connection is the host's.
func CommitHost() string { return commit(hostCTMark) }

// ToHost gives a new connection from outside to the host.
func ToHost() string { return CommitHost() + ",LOCAL" }

func commit(mark int) string {
	return fmt.Sprintf("ct(commit,zone=%d,exec(set_field:%#x->ct_mark))", ZoneGateway, mark)
}

// OfNetwork and OfHost match connections that were committed so.
func (n Names) OfNetwork() string { return fmt.Sprintf("ct_mark=%#x", n.CTMark()) }
func OfHost() string              { return fmt.Sprintf("ct_mark=%#x", hostCTMark) }
