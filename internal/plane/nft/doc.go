// Package nft holds the nftables rows of a node.
//
// In: State.NFTChains, NFTRules, NFTSets and NFTElems. Out: the table `inet egret` and, for chains of family "netdev",
// the table `netdev egret` hold exactly them. Everything in these two tables is ours; nothing outside is touched.
//
// nft prints rules in words of its own, so that a rule's text cannot be compared with what was asked for: a rule's
// comment is its plan name and a hash of its text. Chains and sets have no comments that nft before 1.0.8 would list:
// the set `egret-objects` has one element for each, whose key is a hash of name and definition and whose comment is the
// name.
//
// The plane remembers what it wrote, and learns from the plan's journal what changed since. One new element costs one
// small transaction, no listing and no comparison of other rows, however large its set is. An address is written by
// netlink, and everything else by the nft command. While a row is refused, everything is compared each time. Forget,
// any transaction that fails, and a change of our tables by somebody else lead to a new reading, after which everything
// is compared, too.
//
// Keys and values of elements are compared in nft's spelling: addresses, prefixes, marks in any base and interface
// names are put into it; protocols must be written by name ("tcp"), ports by number.
package nft
