package ovs

import "github.com/ovn-kubernetes/libovsdb/model"

// The columns used here only: a monitor of all would wake us for every statistic (Interface.statistics, each 5 s).

type openVSwitch struct {
	UUID        string            `ovsdb:"_uuid"`
	Bridges     []string          `ovsdb:"bridges"`
	CurCfg      int               `ovsdb:"cur_cfg"`
	ExternalIDs map[string]string `ovsdb:"external_ids"`
	NextCfg     int               `ovsdb:"next_cfg"`
}

type bridge struct {
	UUID         string            `ovsdb:"_uuid"`
	DatapathType string            `ovsdb:"datapath_type"`
	ExternalIDs  map[string]string `ovsdb:"external_ids"`
	FailMode     *string           `ovsdb:"fail_mode"`
	Name         string            `ovsdb:"name"`
	OtherConfig  map[string]string `ovsdb:"other_config"`
	Ports        []string          `ovsdb:"ports"`
}

type port struct {
	UUID       string   `ovsdb:"_uuid"`
	Interfaces []string `ovsdb:"interfaces"`
	Name       string   `ovsdb:"name"`
}

type iface struct {
	UUID        string            `ovsdb:"_uuid"`
	BFD         map[string]string `ovsdb:"bfd"`
	BFDStatus   map[string]string `ovsdb:"bfd_status"`
	ExternalIDs map[string]string `ovsdb:"external_ids"`
	MAC         *string           `ovsdb:"mac"`
	MTURequest  *int              `ovsdb:"mtu_request"`
	Name        string            `ovsdb:"name"`
	OFPort      *int              `ovsdb:"ofport"`
	Options     map[string]string `ovsdb:"options"`
	Type        string            `ovsdb:"type"`
}

func dbModel() (model.ClientDBModel, error) {
	return model.NewClientDBModel("Open_vSwitch", map[string]model.Model{
		"Open_vSwitch": &openVSwitch{}, "Bridge": &bridge{}, "Port": &port{}, "Interface": &iface{},
	})
}
