package settings

import (
	"flag"
	"fmt"
	"log/slog"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"time"
)

// Reachability is how the controllers see that egress nodes live, and how the nodes let them.
type Reachability struct {
	// Timeout of silence after which a node is dead; 0: nobody looks.
	Timeout time.Duration
	// Port of the agents' health service on the management addresses; 0: no such service, and TCP port 9 is probed.
	Port int
	// TLS of the health service.
	TLS HealthFiles
	// Ignored are the lines of the file that mean nothing to these programs: settings of OVN-Kubernetes' own programs,
	// and misspelled ones.
	Ignored []string

	// Witnesses are hosts outside whose answers prove that a controller is not cut off.
	Witnesses []netip.Addr

	flags           *flag.FlagSet
	file, witnesses string
	seconds         int
}

// HealthFiles are the fields of probe.Files. That package opens sockets of Linux, and kubectl-egret also runs
// elsewhere.
type HealthFiles struct{ Cert, Key, CA, Name string }

// Flags registers the flags. Call Read when they are parsed.
func Flags(f *flag.FlagSet) *Reachability {
	r := &Reachability{flags: f}
	f.StringVar(&r.file, "config-file", "", "INI `file` with settings; flags that are given beat it")
	f.IntVar(&r.seconds, "egressip-reachability-total-timeout", 1,
		"`seconds` of silence after which an egress node is dead; 0: egress nodes are assumed to be reachable")
	f.IntVar(&r.Port, "egressip-node-healthcheck-port", 0,
		"`port` of the health service (gRPC) of agents, the same for agents and controllers; 0: TCP port 9 is tried")
	f.StringVar(&r.witnesses, "egressip-reachability-witnesses", "",
		"`addresses` of hosts outside, beside the API server and the default gateways, that a controller asks whether "+
			"it is cut off when no other node answers: 172.18.0.10,172.18.0.11")
	f.StringVar(&r.TLS.Key, "nb-client-privkey", "",
		"private key `file` for the health service; key, certificate and authority are given together, or there is "+
			"no TLS")
	f.StringVar(&r.TLS.Cert, "nb-client-cert", "", "certificate `file` for the health service")
	f.StringVar(&r.TLS.CA, "nb-client-cacert", "",
		"`file` of the authority that the other side's certificate must be of")
	f.StringVar(&r.TLS.Name, "nb-cert-common-name", "",
		"`name` that an agent's certificate must have; without it, any of the authority will do")
	return r
}

// Read completes the values with those of the file, and checks them.
func (r *Reachability) Read() error {
	if r.file != "" {
		var err error
		if r.Ignored, err = fromFile(r.flags, r.file); err != nil {
			return err
		}
	}
	switch {
	case r.seconds < 0:
		return fmt.Errorf("--egressip-reachability-total-timeout %d: give a number of seconds, or 0 for no probes",
			r.seconds)
	case r.Port < 0 || r.Port > 65535:
		return fmt.Errorf("--egressip-node-healthcheck-port %d: give a TCP port, or 0 for port 9", r.Port)
	}
	for _, text := range strings.FieldsFunc(r.witnesses, func(c rune) bool { return c == ',' || c == ' ' }) {
		a, err := netip.ParseAddr(text)
		if err != nil {
			return fmt.Errorf("--egressip-reachability-witnesses: %q is no address", text)
		}
		r.Witnesses = append(r.Witnesses, a)
	}
	r.Timeout = time.Duration(r.seconds) * time.Second
	return r.checkTLS()
}

// checkTLS refuses a part of the files: agents and controllers are to agree whether they speak TLS.
func (r *Reachability) checkTLS() error {
	given := map[string]string{"nb-client-cert": r.TLS.Cert, "nb-client-privkey": r.TLS.Key,
		"nb-client-cacert": r.TLS.CA}
	var missing []string
	for _, flag := range slices.Sorted(maps.Keys(given)) {
		if given[flag] == "" {
			missing = append(missing, describeFlag(flag))
		}
	}
	if len(missing) == 0 || len(missing) == len(given) {
		return nil
	}
	return fmt.Errorf("TLS of the health service lacks %s: give certificate, key and authority to agents and "+
		"controllers, or none of them", strings.Join(missing, " and "))
}

// Warn logs what of the file is ignored.
func (r *Reachability) Warn(log *slog.Logger) {
	if len(r.Ignored) > 0 {
		log.Warn("the file of --config-file has lines that mean nothing to this program: look for those that are "+
			"spelled wrong, or give a flag instead", "file", r.file, "lines", strings.Join(r.Ignored, ", "))
	}
}
