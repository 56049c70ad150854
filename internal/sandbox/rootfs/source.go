package rootfs

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
)

// source says where debootstrap downloads from.
type source struct {
	mirror    string // URI of the Debian archive
	httpProxy string // empty: none, or the one in the environment
}

// indexFormat asks apt for one line per package index: origin, label, archive URI.
const indexFormat = "$(ORIGIN)|$(LABEL)|$(REPO_URI)"

// findSource takes the Debian archive that this machine's apt is configured with, so that a local mirror and its
// proxy are used here too. EGRET_DEBIAN_MIRROR overrides the archive.
func findSource(ctx context.Context) (source, error) {
	proxy := aptProxy(ctx)
	if m := os.Getenv("EGRET_DEBIAN_MIRROR"); m != "" {
		return source{mirror: m, httpProxy: proxy}, nil
	}
	out, err := exec.CommandContext(ctx, "apt-get", "indextargets", "--format", indexFormat,
		"Created-By: Packages").Output()
	if err != nil {
		return source{}, fmt.Errorf("ask apt for its Debian mirror (set EGRET_DEBIAN_MIRROR to name one): %w", err)
	}
	src, ok := pickSource(string(out))
	if !ok {
		return source{}, errors.New("apt knows no Debian archive with http, https or file: run apt-get update, or " +
			"set EGRET_DEBIAN_MIRROR to an archive that has " + suite)
	}
	src.httpProxy = proxy
	return src, nil
}

// pickSource takes the first line of Debian's main archive. Before the first apt-get update, origin and label are
// empty: then it takes the first archive whose URI ends in /debian.
func pickSource(indexes string) (source, bool) {
	var unlabelled *source
	for line := range strings.Lines(indexes) {
		f := strings.Split(strings.TrimSpace(line), "|")
		if len(f) != 3 || !debootstrapReads(f[2]) {
			continue
		}
		src := source{mirror: f[2]}
		if f[0] == "Debian" && f[1] == "Debian" {
			return src, true
		}
		if unlabelled == nil && f[0] == "" && strings.HasSuffix(strings.TrimRight(f[2], "/"), "/debian") {
			unlabelled = &src
		}
	}
	if unlabelled == nil {
		return source{}, false
	}
	return *unlabelled, true
}

func debootstrapReads(uri string) bool {
	for _, scheme := range []string{"http://", "https://", "file:"} {
		if strings.HasPrefix(uri, scheme) {
			return true
		}
	}
	return false
}

// aptProxy is apt's HTTP proxy, or empty.
func aptProxy(ctx context.Context) string {
	out, err := exec.CommandContext(ctx, "apt-config", "dump", "--format", "%v", "Acquire::http::Proxy").Output()
	if err != nil {
		return ""
	}
	if p := strings.TrimSpace(string(out)); p != "DIRECT" {
		return p
	}
	return ""
}
