package ovs

import (
	"maps"
	"reflect"
	"strings"

	"github.com/ovn-kubernetes/libovsdb/cache"
	"github.com/ovn-kubernetes/libovsdb/model"

	"github.com/egret-net/egret/internal/plane"
)

// watchEvents wakes those who wait on every event, and tells Changed of those that matter.
func (d *DB) watchEvents() cache.EventHandler {
	row := func(_ string, row model.Model) {
		d.signalChange(true)
		if i, is := row.(*iface); is && i.ExternalIDs[nodeKey] != "" {
			plane.SignalOnce(d.tunnels)
		}
	}
	return &cache.EventHandlerFuncs{AddFunc: row, DeleteFunc: row,
		UpdateFunc: func(_ string, old, now model.Model) {
			d.signalChange(mattersToPlanes(old, now))
			if i, is := now.(*iface); is && !maps.Equal(i.BFDStatus, old.(*iface).BFDStatus) {
				plane.SignalOnce(d.tunnels)
			}
		}}
}

// mattersToPlanes is false for what concerns no plane: the state of BFD sessions, and counters that follow our own
// writes: ovn-controller notes the Northbound configuration's number on br-int (ovn-nb-cfg, ovn-nb-cfg-ts), and
// ovs-vswitchd its own in cur_cfg. A loop that acted on them would never rest.
func mattersToPlanes(old, now model.Model) bool {
	return !reflect.DeepEqual(withoutCounters(old), withoutCounters(now))
}

func withoutCounters(row model.Model) any {
	switch r := row.(type) {
	case *openVSwitch:
		c := *r
		c.CurCfg, c.NextCfg = 0, 0
		return c
	case *bridge:
		c := *r
		c.ExternalIDs = map[string]string{} // not nil for one and empty for the other
		maps.Copy(c.ExternalIDs, r.ExternalIDs)
		maps.DeleteFunc(c.ExternalIDs, func(k, _ string) bool { return strings.HasPrefix(k, "ovn-nb-cfg") })
		return c
	case *iface:
		c := *r
		c.BFDStatus = nil
		return c
	}
	return row
}
