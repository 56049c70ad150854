package controller_test

import (
	"errors"
	"maps"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestAddressWaitsForItsFormerOwner: an address that an EgressIP asks for no longer is given to another one when the
// first one's status shows that it has let go, however long that cannot be written: two nodes that are named for one
// address would both defend it.
func TestAddressWaitsForItsFormerOwner(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAPI(time.Millisecond)
		a.putNode(aNode("n1", 2))
		a.putNode(aNode("n2", 3))
		a.putEgressIP(anEgressIP("older", 9, "172.18.0.33"))
		a.putEgressIP(anEgressIP("younger", 0, "172.18.0.33"))
		start(t, a)
		time.Sleep(5 * time.Second)
		refuse := func(err error) {
			a.mu.Lock()
			defer a.mu.Unlock()
			a.fail = func(o string) error {
				if o == "egressips/older" {
					return err
				}
				return nil
			}
		}
		refuse(errors.New("refused"))
		a.putEgressIP(anEgressIP("older", 9, "172.18.0.44"))
		for range 20 {
			time.Sleep(2 * time.Second)
			older, younger := a.assigned("older"), a.assigned("younger")
			if older == "n1=172.18.0.33" && younger != "" {
				t.Fatalf("older has %s, younger %s", older, younger)
			}
		}
		refuse(nil)
		time.Sleep(21 * time.Second) // a refused write is tried again at growing distances; then 10 s of no report
		want := map[string]string{"older": "172.18.0.44", "younger": "172.18.0.33"}
		have := map[string]string{}
		for name := range want {
			_, have[name], _ = strings.Cut(a.assigned(name), "=")
		}
		if !maps.Equal(have, want) {
			t.Errorf("have %v, want %v", have, want)
		}
	})
}
