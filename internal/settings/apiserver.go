package settings

import (
	"flag"
	"fmt"
	"net"
	"strconv"
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
	case a.port < 1 || a.port > 65535:
		return "", fmt.Errorf("--api-server-port %d: give a TCP port, such as 6443", a.port)
	}
	return net.JoinHostPort(a.host, strconv.Itoa(int(a.port))), nil
}
