package rootfs

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

const (
	suite   = "trixie"
	variant = "minbase"
	// recipe is raised when finish or the way debootstrap is called changes, so that old folders are rebuilt.
	recipe = "1"
)

// Packages lists the Debian packages of the root folder, besides those of the minbase variant.
func Packages() []string {
	return []string{
		"openvswitch-switch", "ovn-host", "ovn-central",
		"nftables", "iproute2", "conntrack", "iptables", "ethtool", "kmod", "procps",
		"containerd", "runc", "containernetworking-plugins",
		"tcpdump", "curl", "netcat-openbsd", "bind9-dnsutils", "iputils-ping", "ca-certificates",
	}
}

// recipeStamp identifies what the folder is made of: hex SHA-256 of recipe, suite, variant and packages.
func recipeStamp() string {
	parts := append([]string{recipe, suite, variant}, Packages()...)
	sum := sha256.Sum256([]byte(strings.Join(parts, "\n")))
	return hex.EncodeToString(sum[:])
}
