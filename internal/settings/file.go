package settings

import (
	"flag"
	"fmt"
	"slices"

	"gopkg.in/ini.v1"
)

// setting is a line of the file that means a flag.
type setting struct{ section, key, flag string }

// settings are OVN-Kubernetes' names. What else its files say is not for these programs.
var settings = []setting{
	{"ovnkubernetesfeature", "egressip-reachability-total-timeout", "egressip-reachability-total-timeout"},
	{"ovnkubernetesfeature", "egressip-node-healthcheck-port", "egressip-node-healthcheck-port"},
	{"ovnnorth", "client-privkey", "nb-client-privkey"},
	{"ovnnorth", "client-cert", "nb-client-cert"},
	{"ovnnorth", "client-cacert", "nb-client-cacert"},
	{"ovnnorth", "cert-common-name", "nb-cert-common-name"},
}

// called is how a user finds a flag that may stand in the file.
func called(flag string) string {
	i := slices.IndexFunc(settings, func(s setting) bool { return s.flag == flag })
	return fmt.Sprintf("--%s (%s in [%s])", flag, settings[i].key, settings[i].section)
}

// fromFile sets the flags that the command line left alone to what a file says (seed egress-ip.md, "Egress IP
// reachability"). Flags are parsed before.
func fromFile(f *flag.FlagSet, path string) error {
	file, err := ini.LoadSources(ini.LoadOptions{Insensitive: true, AllowBooleanKeys: true,
		SkipUnrecognizableLines: true}, path)
	if err != nil {
		return fmt.Errorf("read the file of --config-file: %w", err)
	}
	given := map[string]bool{}
	f.Visit(func(g *flag.Flag) { given[g.Name] = true })
	for _, s := range settings {
		if given[s.flag] || !file.Section(s.section).HasKey(s.key) {
			continue
		}
		if err := f.Set(s.flag, file.Section(s.section).Key(s.key).String()); err != nil {
			return fmt.Errorf("%s: %s in [%s]: %w", path, s.key, s.section, err)
		}
	}
	return nil
}
