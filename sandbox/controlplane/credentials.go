package main

import (
	"fmt"
	"net"
	"net/netip"
	"os"
)

// ensureCredentials makes the PKI and the kubeconfigs in the state folder; what is there and still right is kept.
//
// Kubeconfigs: admin (through the forwarder), admin-internal, controller-manager and scheduler (to the bind address).
func ensureCredentials(c config) error {
	if err := os.MkdirAll(c.pkiFile(""), 0o700); err != nil {
		return fmt.Errorf("make the PKI folder: %w", err)
	}
	ca, err := ensureAuthority(c.pkiFile(""))
	if err != nil {
		return err
	}
	if err := ensureServiceAccountKey(c.pkiFile("sa.key")); err != nil {
		return fmt.Errorf("service account key: %w", err)
	}
	for name, s := range subjects(c) {
		if err := ca.ensure(c.pkiFile(name), s); err != nil {
			return err
		}
	}
	return writeKubeconfigs(c)
}

// subjects lists the certificates by file name.
func subjects(c config) map[string]subject {
	return map[string]subject{
		"apiserver":          servingSubject(c),
		"admin":              {commonName: "admin", organizations: []string{"system:masters"}},
		"kubelet-client":     {commonName: "kube-apiserver-kubelet-client", organizations: []string{"system:masters"}},
		"front-proxy-client": {commonName: "front-proxy-client"},
		"controller-manager": {commonName: "system:kube-controller-manager"},
		"scheduler":          {commonName: "system:kube-scheduler"},
	}
}

// servingSubject names every way to the API server: the forwarder on loopback, the bind address, the kubernetes
// Service.
func servingSubject(c config) subject {
	s := subject{
		commonName: "kube-apiserver",
		dns: []string{"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc",
			"kubernetes.default.svc.cluster.local"},
		ips: []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback, ipOf(c.bind)},
	}
	for _, p := range c.serviceCIDRs {
		s.ips = append(s.ips, ipOf(p.Addr().Next())) // the API server takes the first address of each
	}
	for _, san := range c.extraSANs {
		if ip := net.ParseIP(san); ip != nil {
			s.ips = append(s.ips, ip)
		} else {
			s.dns = append(s.dns, san)
		}
	}
	return s
}

func ipOf(a netip.Addr) net.IP { return net.IP(a.AsSlice()) }

func writeKubeconfigs(c config) error {
	adminURL := c.serverURL()
	if c.forwardURL != "" {
		adminURL = c.forwardURL
	}
	for _, k := range []struct{ name, certificate, server string }{
		{"admin", "admin", adminURL},
		{"admin-internal", "admin", c.serverURL()},
		{"controller-manager", "controller-manager", c.serverURL()},
		{"scheduler", "scheduler", c.serverURL()},
	} {
		if err := writeKubeconfig(c.kubeconfig(k.name), k.name, k.server, c.pkiFile("ca.crt"),
			c.pkiFile(k.certificate)); err != nil {
			return err
		}
	}
	return nil
}
