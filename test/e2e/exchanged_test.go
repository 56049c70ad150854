package e2e

import (
	"errors"
	"fmt"
	"net/http"
	"os/exec"
	"testing"
	"time"
)

// gatewayIsFound is how long a node takes at most to find a gateway that was exchanged without an announcement
// (docs/architecture.md). The rest is for a busy machine.
const gatewayIsFound = 10*time.Second + 10*time.Second

// exchanged: the nodes' default gateway is exchanged for one with another hardware address, which announces nothing.
// Pods reach hosts behind it again over both families, with their node's address and with an egress IP. It stays: to
// change it back would be another exchange.
func exchanged(t *testing.T, n *namespace, far far) {
	const port = 7072
	serveIn(t, far.netns, port, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "ok") }))
	reach := func(pod, target string) error {
		out, err := n.exec(t.Context(), pod, "curl -sS --max-time 1 "+target)
		if err == nil && out != "ok" {
			err = fmt.Errorf("the answer is %q", out)
		}
		return err
	}
	each := func(do func(pod, target string)) {
		for _, p := range []string{"plain", "selected", "home"} {
			for _, ip := range far.ips {
				do(p, url(ip, port, "/"))
			}
		}
	}
	each(func(pod, target string) { within(t, soon, func() error { return reach(pod, target) }) })
	script := `link=` + n.c.FabricBridge() + ` new=02:ee:ee:ee:ee:01
[ $(cat /sys/class/net/$link/address) != $new ] || new=02:ee:ee:ee:ee:02
ip link set $link address $new`
	in := exec.CommandContext(t.Context(), "ip", "netns", "exec", n.c.FabricNetns(), "sh", "-c", script)
	if out, err := in.CombinedOutput(); err != nil {
		t.Fatal(errors.Join(err, errors.New(string(out))))
	}
	start := time.Now()
	each(func(pod, target string) {
		within(t, gatewayIsFound, func() error { return reach(pod, target) })
		t.Logf("pod %s reaches %s after %v", pod, target, time.Since(start).Round(time.Second/10))
	})
}
