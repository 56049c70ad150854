package ovs

import (
	"errors"
	"fmt"
	"strings"

	"github.com/egret-net/egret/internal/plan"
	"github.com/egret-net/egret/internal/plane"
)

// checkPort says why a port would be another to ovs-vswitchd than it is in the plan: its name is that of a network
// device, and pairs are told apart by commas.
func checkPort(k plan.Port, s plan.PortSpec) error {
	errs := []error{plane.CheckDevice(k.Bridge), plane.CheckDevice(k.Name), plane.CheckWord("type", s.Type),
		plane.CheckWord("MAC", s.MAC)}
	for _, text := range []string{s.ExternalIDs, s.Options, s.BFD} {
		errs = append(errs, checkPairs(text))
	}
	return errors.Join(errs...)
}

// checkPairs: with a comma in a value there would be a pair without "=", or with a key that occurs twice.
func checkPairs(text string) error {
	if err := plane.CheckText("pairs", text, " \"';\\#"); err != nil || text == "" {
		return err
	}
	seen := map[string]bool{}
	for kv := range strings.SplitSeq(text, ",") {
		key, _, ok := strings.Cut(kv, "=")
		if !ok || key == "" || seen[key] {
			return fmt.Errorf("%q are no pairs KEY=VALUE with different keys", text)
		}
		seen[key] = true
	}
	return nil
}

// checkID says why an entry of Open_vSwitch external_ids cannot be one: the keys that are ours are told apart by
// spaces.
func checkID(key, value string) error {
	return errors.Join(plane.CheckWord("key", key), plane.CheckText("value of "+key, value, ""))
}

// wellFormed are the settings of a plan that can be written, and the refusals of the others.
func wellFormed(want *plan.State) (ids map[string]string, refused []error) {
	ids = map[string]string{}
	for k, v := range want.OVSIDs.Rows() {
		if err := checkID(k, v); err != nil {
			refused = append(refused, &plane.Refused{Plane: planeName, Owner: want.OVSIDs.Owner(k),
				Row: "external_ids:" + k, Err: err})
			continue
		}
		ids[k] = v
	}
	return ids, refused
}
