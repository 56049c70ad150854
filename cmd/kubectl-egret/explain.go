package main

import (
	"context"
	"fmt"
	"io"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/egret-net/egret/internal/explain"
	"github.com/egret-net/egret/internal/feature/all"
	"github.com/egret-net/egret/internal/kube"
	"github.com/egret-net/egret/internal/trace"
	"github.com/egret-net/egret/internal/world"
)

// readTimeout bounds the reading of the API.
const readTimeout = time.Minute

var protocols = []string{"tcp", "udp", "sctp", "icmp"}

func explainCommand() *cobra.Command {
	c := &cobra.Command{
		Use:     "explain {[NAMESPACE/]POD | ADDRESS} DESTINATION",
		Short:   "Says with which source address a pod's packet to an IP address leaves, by which way, and why",
		Example: "  kubectl egret explain shop/web-0 203.0.113.7",
		Long: `Says with which source address a pod's packet to an IP address leaves the cluster, which EgressIPs and
EgressServices decide about that and why others do not, and which way it takes. It reads Kubernetes alone, and ends with
the commands that show what nodes have. An address is that of a pod in any network. If pods of several networks have it,
the answer is about each of them.`,
		Args: cobra.ExactArgs(2),
	}
	o := newOptions(c.Flags())
	protocol := c.Flags().String("protocol", "tcp", "tcp, udp, sctp or icmp")
	port := c.Flags().Uint16("port", 80, "the packet's destination port")
	c.RunE = func(c *cobra.Command, args []string) error {
		p, err := parsePacket(args[1], *protocol, *port)
		if err != nil {
			return err
		}
		text, err := explainPacket(c.Context(), o, args[0], p)
		if err != nil {
			return err
		}
		_, err = io.WriteString(c.OutOrStdout(), text)
		return err
	}
	return c
}

func explainPacket(ctx context.Context, o *options, from string, p trace.Packet) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	w, err := readWorld(ctx, o)
	if err != nil {
		return "", err
	}
	if ip, err := netip.ParseAddr(from); err == nil { // a pod with such a name is named with its namespace
		return explain.AskAll(all.ServedKinds(), w, ip.Unmap(), p)
	}
	key, err := o.podKey(from)
	if err != nil {
		return "", err
	}
	answer, err := explain.Ask(all.ServedKinds(), w, key, p)
	if err != nil {
		return "", err
	}
	return answer.Text(), nil
}

func parsePacket(to, protocol string, port uint16) (trace.Packet, error) {
	a, err := netip.ParseAddr(to)
	if err != nil {
		return trace.Packet{}, fmt.Errorf("destination %q is no IP address such as 203.0.113.7", to)
	}
	if !slices.Contains(protocols, protocol) {
		return trace.Packet{}, fmt.Errorf("--protocol %q: give one of %s", protocol, strings.Join(protocols, ", "))
	}
	return trace.Packet{Dst: a.Unmap().WithZone(""), Proto: protocol, DstPort: port}, nil
}

// readWorld is the world that the API has.
func readWorld(ctx context.Context, o *options) (*world.World, error) {
	clients, err := o.newClients()
	if err != nil {
		return nil, err
	}
	config, err := o.agentConfig(ctx, clients)
	if err != nil {
		return nil, err
	}
	w := all.ServedKinds().NewWorld("", config)
	return w, kube.Load(ctx, clients, w, kube.Explained(all.ServedKinds().AllResources()...)...)
}
