package settings

import (
	"flag"
	"fmt"
	"slices"
	"strings"

	"gopkg.in/ini.v1"
)

// setting is a line of the file that means a flag.
type setting struct{ section, key, flag string }

// settings are OVN-Kubernetes' names, but for slot subnets, witnesses, agents' Leases and the authority of metrics'
// readers, which it has none of; of two lines for one flag the first here counts.
var settings = []setting{
	{"default", "mtu", "mtu"},
	{"default", "encap-port", "encap-port"},
	{"default", "cluster-subnets", "cluster-subnets"},
	{"kubernetes", "service-cidrs", "service-subnets"},
	{"gateway", "v4-join-subnet", "gateway-v4-join-subnet"},
	{"gateway", "v6-join-subnet", "gateway-v6-join-subnet"},
	{"gateway", "v4-masquerade-subnet", "gateway-v4-masquerade-subnet"},
	{"gateway", "v6-masquerade-subnet", "gateway-v6-masquerade-subnet"},
	{"clustermanager", "v4-transit-subnet", "cluster-manager-v4-transit-subnet"},
	{"clustermanager", "v6-transit-subnet", "cluster-manager-v6-transit-subnet"},
	{"ovnkubernetesfeature", "egressip-v4-slot-subnet", "egressip-v4-slot-subnet"},
	{"ovnkubernetesfeature", "egressip-v6-slot-subnet", "egressip-v6-slot-subnet"},
	{"ovnkubernetesfeature", "egressip-reachability-total-timeout", "egressip-reachability-total-timeout"},
	{"ovnkubernetesfeature", "egressip-node-healthcheck-port", "egressip-node-healthcheck-port"},
	{"ovnkubernetesfeature", "egressip-reachability-witnesses", "egressip-reachability-witnesses"},
	{"ovnkubernetesfeature", "agent-lease-duration", "agent-lease-duration"},
	{"metrics", "bind-address", "metrics-bind-address"},
	{"metrics", "node-server-privkey", "node-server-privkey"},
	{"metrics", "node-server-cert", "node-server-cert"},
	{"metrics", "client-cacert", "metrics-client-cacert"},
	{"egressip-healthcheck-tls", "client-privkey", "nb-client-privkey"},
	{"egressip-healthcheck-tls", "client-cert", "nb-client-cert"},
	{"egressip-healthcheck-tls", "client-cacert", "nb-client-cacert"},
	{"egressip-healthcheck-tls", "cert-common-name", "nb-cert-common-name"},
	{"ovnnorth", "client-privkey", "nb-client-privkey"},
	{"ovnnorth", "client-cert", "nb-client-cert"},
	{"ovnnorth", "client-cacert", "nb-client-cacert"},
	{"ovnnorth", "cert-common-name", "nb-cert-common-name"},
}

// describeFlag is how a user finds a flag that may stand in the file.
func describeFlag(flag string) string {
	i := slices.IndexFunc(settings, func(s setting) bool { return s.flag == flag })
	return fmt.Sprintf("--%s (%s in [%s])", flag, settings[i].key, settings[i].section)
}

// fromFile sets the flags that the command line left alone to what a file says (seed egress-ip.md, "Egress IP
// reachability"), and returns the lines that mean nothing here. Flags are parsed before.
func fromFile(f *flag.FlagSet, path string) (ignored []string, err error) {
	file, err := ini.LoadSources(ini.LoadOptions{Insensitive: true, AllowBooleanKeys: true,
		SkipUnrecognizableLines: true}, path)
	if err != nil {
		return nil, fmt.Errorf("read the file of --config-file: %w", err)
	}
	given := givenFlags(f)
	for _, s := range settings {
		// a line for agents may stand in the file of controllers
		if f.Lookup(s.flag) == nil || given[s.flag] || !file.Section(s.section).HasKey(s.key) {
			continue
		}
		if err := f.Set(s.flag, file.Section(s.section).Key(s.key).String()); err != nil {
			return nil, fmt.Errorf("%s: %s in [%s]: %w", path, s.key, s.section, err)
		}
		given[s.flag] = true
	}
	return unreadLines(file), nil
}

// unreadLines are the lines of a file that no setting is, as people find them.
func unreadLines(file *ini.File) []string {
	var out []string
	for _, section := range file.Sections() {
		for _, key := range section.KeyStrings() {
			is := func(s setting) bool { return s.section == section.Name() && s.key == key }
			if !slices.ContainsFunc(settings, is) {
				out = append(out, fmt.Sprintf("%s in [%s]", key, strings.ToLower(section.Name())))
			}
		}
	}
	slices.Sort(out)
	return out
}
