package simulate

import (
	"os"
	"testing"
	"time"

	v1 "github.com/egret-net/egret/api/v1"
)

// TestNewLeaderKeepsWhatIsInForce: a controller that was cut off leads again while one of its watches is late. An
// object that came into force meanwhile stays so: otherwise its pods would leave with their node's address.
func TestNewLeaderKeepsWhatIsInForce(t *testing.T) {
	for story, inForce := range map[string]func(*Sim) bool{
		"leader-returns-late-nodes": func(s *Sim) bool {
			a := get[*v1.EgressIP](s.api, "egressips", "a")
			return a != nil && len(a.Status.InForce) > 0
		},
		"leader-returns-late-services": func(s *Sim) bool {
			u := get[*v1.EgressService](s.api, "egressservices", namespace+"/u")
			return u != nil && len(u.Status.InForce) > 0
		},
	} {
		text, err := os.ReadFile("testdata/" + story + ".story")
		if err != nil {
			t.Fatal(err)
		}
		s, was := newSim(0, string(text)), false
		s.every(tick, func() {
			if is := inForce(s); was && !is {
				t.Errorf("%s: out of force at %s", story, s.told())
			} else {
				was = is
			}
		})
		last := s.tell(string(text))
		if s.run(begin.Add(settling + last + 30*time.Second)); !was {
			t.Errorf("%s: it has never come into force", story)
		}
	}
}
