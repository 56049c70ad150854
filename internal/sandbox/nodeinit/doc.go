// Package nodeinit is the first process of a sandbox node, as a boot loader, fstab and systemd are to a machine.
//
// In: a Spec (JSON file) and a process that already is in the node's own network, mount, pid, uts and ipc namespaces.
// Out: the node's root folder mounted and entered, its processes running and started again when they end, and a
// control socket (ControlSocket) over which they are listed, killed, stopped and started.
package nodeinit
