package ovntest

import (
	"strings"
	"testing"
)

func TestTrace(t *testing.T) {
	e := Start(t)
	e.NBCtl("ls-add", "sw", "--", "lsp-add", "sw", "a", "--", "lsp-set-addresses", "a", "0a:58:0a:00:00:01 10.0.0.1",
		"--", "lsp-add", "sw", "b", "--", "lsp-set-addresses", "b", "0a:58:0a:00:00:02 10.0.0.2")
	for _, port := range []string{"b", "c"} {
		if port == "c" {
			e.NBCtl("lsp-del", "b")
			e.NBCtl("lsp-add", "sw", "c", "--", "lsp-set-addresses", "c", "0a:58:0a:00:00:02 10.0.0.2")
		}
		if err := e.Sync(t.Context()); err != nil {
			t.Fatal(err)
		}
		out, err := e.Trace(t.Context(), "sw",
			`inport=="a" && eth.src==0a:58:0a:00:00:01 && eth.dst==0a:58:0a:00:00:02 && ip4.src==10.0.0.1 && ip4.dst==10.0.0.2 && ip.ttl==64`, "--minimal")
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(out, `output("`+port+`")`) {
			t.Errorf("the packet does not reach %s:\n%s", port, out)
		}
	}
}
