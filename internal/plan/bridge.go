package plan

// What the flows of the gateway bridge are made of: see feature gateway. Host and gateway router share the node's addresses, and ct_mark in
// ZoneGateway tells whose a connection is.
const (
	// PatchPort is the patch port to the integration bridge; the plane puts the number in.
	PatchPort = "{patch}"
	// CommitOVN and CommitHost remember whose the connection is.
	CommitOVN  = "ct(commit,zone=64000,exec(set_field:0x1->ct_mark))"
	CommitHost = "ct(commit,zone=64000,exec(set_field:0x2->ct_mark))"
	// ToOVN and ToHost give a new connection from outside to one of them.
	ToOVN  = CommitOVN + ",output:" + PatchPort
	ToHost = CommitHost + ",LOCAL"
)
