// Package removal undoes on one node what Egret has done there, while none of Egret's programs runs on it.
//
// In: the agent's own options, and the marks of what is Egret's, which the planes know: they shrink to an empty plan.
// Out: the uplink has its addresses and routes, and what carries these marks is gone, with files and with what the API
// has of the node; or an error that says what is left. It may be interrupted anywhere and be run again.
package removal
