package main

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"path/filepath"
	"strconv"

	"github.com/spf13/pflag"
)

// config is what "all" is started with.
type config struct {
	dir           string     // state folder, absolute: pki, etcd, kubeconfigs
	bind          netip.Addr // served and advertised; not loopback
	port          uint16     // on bind
	serviceCIDRs  []netip.Prefix
	extraSANs     []string // further names and addresses of the serving certificate
	forwardFD     int      // listener to forward to the API server; negative: none
	forwardURL    string   // the API server as reached through forwardFD, for admin.kubeconfig
	apiserverArgs []string
	kcmArgs       []string
}

// serverURL is the API server as reached from the cluster's nodes.
func (c config) serverURL() string { return "https://" + c.address() }

func (c config) address() string {
	return net.JoinHostPort(c.bind.String(), strconv.Itoa(int(c.port)))
}

// pkiFile is the path of a file in the PKI folder.
func (c config) pkiFile(name string) string { return filepath.Join(c.dir, "pki", name) }

func (c config) kubeconfig(name string) string { return filepath.Join(c.dir, name+".kubeconfig") }

// parseConfig reads the flags of "all".
func parseConfig(args []string) (config, error) {
	var c config
	var bind string
	var cidrs []string
	fs := pflag.NewFlagSet("all", pflag.ContinueOnError)
	fs.StringVar(&c.dir, "dir", "", "state folder (PKI, etcd, kubeconfigs); kept between starts")
	fs.StringVar(&bind, "bind", "", "IPv4 or IPv6 address to serve on and to advertise; not loopback, which the "+
		"kubernetes Service cannot have as endpoint")
	fs.Uint16Var(&c.port, "port", 6443, "port on --bind")
	fs.StringSliceVar(&cidrs, "service-cidrs", []string{"10.96.0.0/16"}, "Service network, or one of each family")
	fs.StringSliceVar(&c.extraSANs, "extra-sans", nil, "further DNS names and addresses of the serving certificate")
	fs.IntVar(&c.forwardFD, "forward-fd", -1,
		"inherited file descriptor of a TCP listener, of any network namespace, whose connections are forwarded to "+
			"the API server")
	fs.StringVar(&c.forwardURL, "forward-url", "",
		"URL of --forward-fd, written to admin.kubeconfig (default: the one of --bind)")
	fs.StringArrayVar(&c.apiserverArgs, "apiserver-arg", nil, "further kube-apiserver flag (repeatable)")
	fs.StringArrayVar(&c.kcmArgs, "kcm-arg", nil, "further kube-controller-manager flag (repeatable)")
	if err := fs.Parse(args); err != nil {
		return config{}, err
	}
	return c.checked(bind, cidrs)
}

// checked completes c from the textual flags.
func (c config) checked(bind string, cidrs []string) (config, error) {
	var err error
	if c.dir == "" {
		return config{}, errors.New("--dir is missing: name the state folder")
	}
	if c.dir, err = filepath.Abs(c.dir); err != nil {
		return config{}, err
	}
	if c.bind, err = netip.ParseAddr(bind); err != nil || c.bind.IsLoopback() || c.bind.IsUnspecified() {
		return config{}, fmt.Errorf("--bind %q: want one address of this network namespace that is not loopback", bind)
	}
	for _, s := range cidrs {
		p, err := netip.ParsePrefix(s)
		if err != nil {
			return config{}, fmt.Errorf("--service-cidrs: %w", err)
		}
		c.serviceCIDRs = append(c.serviceCIDRs, p.Masked())
	}
	if n := len(c.serviceCIDRs); n == 0 || n > 2 {
		return config{}, fmt.Errorf("--service-cidrs: want one network or one of each family, have %d", n)
	}
	if c.serviceCIDRs[0].Addr().Is4() != c.bind.Is4() {
		return config{}, fmt.Errorf("--service-cidrs: the first must be of the family of --bind %s", c.bind)
	}
	return c, nil
}
