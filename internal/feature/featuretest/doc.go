// Package featuretest runs scripts about features: Kubernetes objects in, the nodes' plans and the ways of packets out.
//
// In: testdata/*.txtar of a feature. Its comment is the script, its files are objects in YAML. Out: test failures where
// a command's output is not the text indented below it; with -update that text is replaced. Every plan is asked of a
// memo that saw each change, and compared with the full compile.
//
// Commands:
//
//	cluster shared|local ipv4|ipv6|dual   begins: gateway mode and families, no objects yet
//	apply FILE                            objects of the archive, or of this package's folder objects
//	delete KIND NAME                      NAME is "namespace/name" where the kind has namespaces
//	label KIND NAME key=value key-        as kubectl does
//	assign                                egress IPs' statuses, as the controller decides; prints what changed
//	report [NODE]...                      nodes, or all, say in their EgressNode what their plan translates to
//	overdue NODE                          the node waits no longer for holders that have not said that they are
//	cleared NODE OTHER yes|no|late|unanswered
//	                                      the node knows that another one has followed, or not, or is late to say so
//	former NODE IP OBJECT OTHER           another one may translate an address for an object as before; -: no more
//	plan NODE [feature=NAME] [WORD]...    a node's plan, of one feature, the lines that contain one of the words
//	diff NODE [WORD]...                   the rows that the last change added and removed
//	packet POD ADDR[:PORT/PROTO] [reply]  where a packet of a pod ends
//	packet outside@NODE ADDR:PORT/PROTO [unanswered]
//	                                      one of a client outside (172.18.0.100, ...::100) to a node, by its uplink
//	packet outside@NODE/LINK ADDR:PORT/PROTO
//	                                      the same by another link
//	walk POD ADDR[:PORT/PROTO] [reply]    and every step on its way
//	explain POD ADDR[:PORT/PROTO]         the output of kubectl egret explain
package featuretest
