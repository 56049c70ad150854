package settings_test

import (
	"flag"
	"strings"
	"testing"

	"github.com/egret-net/egret/internal/settings"
	"github.com/egret-net/egret/internal/world"
)

func subnets(t *testing.T, args ...string) error {
	t.Helper()
	f := flag.NewFlagSet("egret", flag.ContinueOnError)
	s := settings.SubnetFlags(f)
	if err := f.Parse(args); err != nil {
		t.Fatal(err)
	}
	return s.Into(&world.Config{})
}

// TestSubnetsThatPass: the defaults, those of sandboxes, and of clusters that OVN-Kubernetes was set up for.
func TestSubnetsThatPass(t *testing.T) {
	for _, args := range []string{
		"",
		"--cluster-subnets=10.244.0.0/16/24,fd00:10:244::/48/64 --service-subnets=10.96.0.0/16,fd00:10:96::/112",
		"--cluster-subnets=fd00:10:244::/48/64 --service-subnets=fd00:10:96::/112",
		"--cluster-subnets=10.244.0.0/14/24",
		"--cluster-subnets=10.128.0.0/14/23 --service-subnets=172.30.0.0/16",
		"--cluster-subnets=10.244.0.0/16/24,10.245.0.0/16/24",
		"--cluster-subnets=100.64.0.0/14/24 --gateway-v4-join-subnet=100.70.0.0/16 --gateway-v6-join-subnet=fd99::/64 " +
			"--cluster-manager-v4-transit-subnet=100.89.0.0/16 --cluster-manager-v6-transit-subnet=fd9a::/112",
		"--egressip-v4-slot-subnet=100.104.0.0/13 --egressip-v6-slot-subnet=fd96:18::/29 --cluster-subnets=100.96.0.0/13/24 " +
			"--gateway-v4-masquerade-subnet=169.254.0.0/17 --gateway-v6-masquerade-subnet=fd69::/112",
	} {
		if err := subnets(t, strings.Fields(args)...); err != nil {
			t.Errorf("%s: %v", args, err)
		}
	}
}

// TestSubnetsThatCannotWork: overlaps of each two kinds of ranges, in both families, and ranges without room.
func TestSubnetsThatCannotWork(t *testing.T) {
	for args, want := range map[string]string{
		"--cluster-subnets=10.244.0.0/16/24,10.244.1.0/24": "pod subnet 10.244.0.0/16 and pod subnet 10.244.1.0/24 " +
			"overlap: give --cluster-subnets a range outside 10.244.0.0/16",
		"--cluster-subnets=10.64.0.0/10/24": "pod subnet 10.64.0.0/10 and service subnet 10.96.0.0/16 " +
			"overlap: give --service-subnets a range outside 10.64.0.0/10",
		"--service-subnets=10.244.128.0/24": "pod subnet 10.244.0.0/16 and service subnet " +
			"10.244.128.0/24 overlap: give --service-subnets a range outside 10.244.0.0/16",
		"--service-subnets=10.96.0.0/16,10.96.8.0/24": "service subnet 10.96.0.0/16 and service subnet " +
			"10.96.8.0/24 overlap: give --service-subnets a range outside 10.96.0.0/16",
		"--cluster-subnets=100.64.0.0/14/24": "pod subnet 100.64.0.0/14 and join subnet 100.64.0.0/16 " +
			"overlap: give --gateway-v4-join-subnet a range outside 100.64.0.0/14",
		"--service-subnets=100.88.7.0/24": "service subnet 100.88.7.0/24 and transit subnet " +
			"100.88.0.0/16 overlap: give --cluster-manager-v4-transit-subnet a range outside 100.88.7.0/24",
		"--cluster-subnets=100.100.0.0/16": "pod subnet 100.100.0.0/16 and slot subnet 100.96.0.0/13 " +
			"overlap: give --egressip-v4-slot-subnet a range outside 100.100.0.0/16",
		"--service-subnets=169.254.169.0/24": "service subnet 169.254.169.0/24 and masquerade subnet " +
			"169.254.169.0/29 overlap: give --gateway-v4-masquerade-subnet a range outside 169.254.169.0/24",
		"--cluster-subnets=fd98::/48/64": "pod subnet fd98::/48 and join subnet fd98::/64 overlap: " +
			"give --gateway-v6-join-subnet a range outside fd98::/48",
		"--gateway-v4-join-subnet=100.96.0.0/16": "join subnet 100.96.0.0/16 and slot subnet 100.96.0.0/13 overlap: " +
			"give --egressip-v4-slot-subnet a range outside 100.96.0.0/16",
		"--gateway-v4-join-subnet=100.88.0.0/16": "join subnet 100.88.0.0/16 and transit subnet 100.88.0.0/16 overlap: " +
			"give --cluster-manager-v4-transit-subnet a range outside 100.88.0.0/16",
		"--gateway-v4-join-subnet=254.0.0.0/16": "join subnet 254.0.0.0/16 and further slot subnet 254.0.0.0/8 overlap: the " +
			"latter is fixed; give --gateway-v4-join-subnet a range outside 254.0.0.0/8",
		"--gateway-v4-join-subnet=224.0.0.0/16": "join subnet 224.0.0.0/16 has addresses that no machine can have: give " +
			"--gateway-v4-join-subnet a range outside 224.0.0.0/4 (multicast)",
		"--cluster-subnets=127.0.0.0/16/24": "pod subnet 127.0.0.0/16 has addresses that no machine can have: give " +
			"--cluster-subnets a range outside 127.0.0.0/8 (loopback)",
		"--service-subnets=ff00::/112": "service subnet ff00::/112 has addresses that no machine can have",
		"--gateway-v4-masquerade-subnet=100.64.3.0/29": "join subnet 100.64.0.0/16 and masquerade subnet 100.64.3.0/29 " +
			"overlap: give --gateway-v4-masquerade-subnet a range outside 100.64.0.0/16",
		"--gateway-v6-masquerade-subnet=fd69::/126": "is too small: give one with room for 8 addresses, such as fd69::/125",
		"--egressip-v4-slot-subnet=100.112.0.0/14":  "its length is to be 13",
		"--egressip-v6-slot-subnet=fd96::/29":       "second group not 0",
		"--gateway-v4-join-subnet=100.64.0.0/20": "is too small: give one with room for 65,536 addresses, such as " +
			"100.64.0.0/16",
		"--cluster-manager-v6-transit-subnet=fd97::/120": "is too small",
		"--gateway-v6-join-subnet=100.64.0.0/16":         "is of the other family",
		"--gateway-v4-join-subnet=100.64.0.1/16":         "is no range: write one such as 100.64.0.0/16",
		"--cluster-subnets=fd97::/16/64":                 "pod subnet fd97::/16 and transit subnet fd97::/64 overlap",
		"--cluster-subnets=fd96:8::/32/64":               "pod subnet fd96:8::/32 and slot subnet fd96:8::/29 overlap",
		"--cluster-subnets=fd00:10:244::/48": "service subnet 10.96.0.0/16 is of IPv4, and pods have no such addresses: give " +
			"--service-subnets and --cluster-subnets ranges of the same families",
		"--service-subnets=10.96.0.0/16,fd00:10:96::/112": "service subnet fd00:10:96::/112 is of IPv6, and pods have no such",
		"--cluster-subnets=10.244.0.0/25":                 `cluster subnet "10.244.0.0/25": a node's part of 24 bits is no usable subnet`,
		"--cluster-subnets=fd69::/48/64": "pod subnet fd69::/48 and masquerade subnet fd69::/125 " +
			"overlap",
	} {
		if err := subnets(t, strings.Fields(args)...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: have %v\nwant %s", args, err, want)
		}
	}
}
