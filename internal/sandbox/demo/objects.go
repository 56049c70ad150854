package demo

import (
	"embed"
	"net/netip"
	"strings"

	"github.com/egret-net/egret/internal/sandbox"
)

//go:embed objects/*.yaml
var objects embed.FS

// readManifest returns a file of objects without the lines that name an address or a range of a family that the
// sandbox does not have. In a dual-stack cluster one EgressIP has the addresses of both: a pod is served by one
// EgressIP, not by one for each family.
func readManifest(name string, f sandbox.IPFamily) (string, error) {
	content, err := objects.ReadFile("objects/" + name + ".yaml")
	if err != nil {
		return "", err
	}
	var out strings.Builder
	for line := range strings.Lines(string(content)) {
		if !isOfOtherFamily(line, f) {
			out.WriteString(line)
		}
	}
	return out.String(), nil
}

func isOfOtherFamily(line string, f sandbox.IPFamily) bool {
	fields := strings.Fields(line)
	if f == sandbox.Dual || len(fields) == 0 {
		return false
	}
	address, _, _ := strings.Cut(fields[len(fields)-1], "/")
	ip, err := netip.ParseAddr(address)
	return err == nil && ip.Is4() != (f == sandbox.IPv4)
}
