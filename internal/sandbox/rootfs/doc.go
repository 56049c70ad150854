// Package rootfs builds the Debian 13 root folder that every sandbox node runs in.
//
// In: the folder to fill, the machine's own apt configuration (mirror, proxy, keyring) and debootstrap.
// Out: a folder with OVN 25.03, OVS 3.5, nftables 1.1, containerd and runc, complete or absent, never half done.
// The folder is shared by all nodes of all sandboxes, so its users mount it read-only (overlay lower directory).
package rootfs
