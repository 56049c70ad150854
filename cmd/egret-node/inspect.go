package main

import (
	"context"
	"flag"
	"fmt"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/egret-net/egret/internal/node/inspect"
)

// askTimeout is longer than the agent takes to give up.
const askTimeout = 30 * time.Second

// printPlan prints what the agent of this node wants of it.
func printPlan() error {
	f := questionFlags("plan", "[--owner KIND/NAME] [--diff]", `
Prints what the agent wants this node to hold, one line a row. With --diff it prints what nftables, the gateway
bridge's flows and OVN's databases lack of that ("missing"), and what they have of Egret's that nobody wants
("unwanted"); nothing when they agree.
`)
	owner := f.String("owner", "", "only rows that concern this object, such as egressip/prod or pod/shop/web-0")
	diff := f.Bool("diff", false, "compare with what the node holds")
	socket, args := parseMixed(f)
	if len(args) > 0 {
		return fmt.Errorf("plan takes flags only, and has %q: see egret-node plan --help", args)
	}
	form := url.Values{"owner": {*owner}}
	if *diff {
		form.Set("diff", "1")
	}
	return askAgent(socket, "plan", form)
}

// printTrace prints the way of a packet of a pod of this node.
func printTrace() error {
	f := questionFlags("trace", "NAMESPACE/POD DESTINATION", `
Prints which way a packet of a pod of this node takes, row by row, where it ends, and with which source address.
Where it may take several ways (ECMP), each is printed. What other nodes do is computed from what this node
knows of them.
`)
	protocol := f.String("protocol", "tcp", "tcp, udp, sctp or icmp")
	port := f.Uint("port", 80, "the packet's destination port")
	socket, args := parseMixed(f)
	if len(args) != 2 {
		return fmt.Errorf("trace needs a pod and an address, such as egret-node trace shop/web-0 203.0.113.7")
	}
	form := url.Values{"pod": {args[0]}, "to": {args[1]}, "protocol": {*protocol}, "port": {strconv.Itoa(int(*port))}}
	return askAgent(socket, "trace", form)
}

func questionFlags(name, arguments, help string) *flag.FlagSet {
	f := flag.NewFlagSet("egret-node "+name, flag.ExitOnError)
	f.Usage = func() {
		fmt.Fprintf(f.Output(), "Usage: egret-node %s %s%sOnly root may ask.\n", name, arguments, help)
		f.PrintDefaults()
	}
	f.String("socket", inspect.DefaultSocket, "where the agent listens (its --agent-socket)")
	return f
}

// parseMixed takes flags before and behind arguments. "-" alone is an argument, as package flag has it.
func parseMixed(f *flag.FlagSet) (socket string, args []string) {
	rest := os.Args[2:]
	for len(rest) > 0 {
		f.Parse(rest) //nolint:errcheck // it exits
		rest = f.Args()
		end := slices.IndexFunc(rest, func(s string) bool { return strings.HasPrefix(s, "-") && s != "-" })
		if end < 0 {
			end = len(rest)
		}
		args, rest = append(args, rest[:end]...), rest[end:]
	}
	return f.Lookup("socket").Value.String(), args
}

func askAgent(socket, path string, form url.Values) error {
	ctx, cancel := context.WithTimeout(context.Background(), askTimeout)
	defer cancel()
	text, err := inspect.Ask(ctx, socket, path, form)
	fmt.Print(text)
	return err
}
