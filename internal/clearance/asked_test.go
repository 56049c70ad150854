package clearance_test

import "testing"

// TestEndsWhileAsked: a claim ends while the first question to a node is under way, and nobody needs the node any more.
// The answer does not say that the node has followed the end.
func TestEndsWhileAsked(t *testing.T) {
	s := tell(t, 1)
	s.group("0")
	s.group("")
	s.answer(nil)
	s.group("2")
	s.servesE2("n2 has answered before the end", false)
	s.answerAll()
	s.servesE2("n2 has answered since", true)
}
