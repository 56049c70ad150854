package settings

import (
	"flag"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// APIServer is where a program in a pod finds the API server.
type APIServer struct {
	host string
	port uint
}

// APIServerFlags registers the flags. Call AddressFor when they are parsed.
func APIServerFlags(f *flag.FlagSet) *APIServer {
	a := &APIServer{}
	f.StringVar(&a.host, "api-server-host", "",
		"`host` of the API server as nodes reach it: a program in a pod needs it, for a ClusterIP works only once Egret does")
	f.UintVar(&a.port, "api-server-port", 6443, "TCP `port` of that host")
	return a
}

// AddressFor returns host:port, or "" for a program that has a kubeconfig.
func (a *APIServer) AddressFor(kubeconfig string) (string, error) {
	switch {
	case kubeconfig != "":
		return "", nil
	case a.host == "":
		return "", fmt.Errorf("where the API server is has not been set: give KUBERNETES_SERVICE_HOST in ConfigMap " +
			"egret-system/egret, or --api-server-host, the host that `kubectl config view --minify` names as server; " +
			"nodes must reach it without a ClusterIP")
	case !isHost(a.host):
		return "", fmt.Errorf("--api-server-host %q is neither an address nor a name: give KUBERNETES_SERVICE_HOST in "+
			"ConfigMap egret-system/egret without https:// and without a port, such as 192.0.2.1 or api.example.org, and "+
			"the port in KUBERNETES_SERVICE_PORT", a.host)
	case a.port < 1 || a.port > 65535:
		return "", fmt.Errorf("--api-server-port %d: give a TCP port, such as 6443", a.port)
	}
	return net.JoinHostPort(a.host, strconv.Itoa(int(a.port))), nil
}

// isHost says whether a text is an address without brackets, or a name of DNS.
func isHost(text string) bool {
	if _, err := netip.ParseAddr(text); err == nil {
		return true
	}
	return len(validation.IsDNS1123Subdomain(strings.ToLower(strings.TrimSuffix(text, ".")))) == 0
}
