// Command kernel runs tests in a virtual machine with a Debian kernel, for what the kernel of a development machine may
// lack: the openvswitch module, VRF, cgroup v2. It is `make test-kernel`.
//
// In: qemu-system-x86, the machine's own apt (which the kernel package is fetched with, once, into the cache folder;
// nothing is installed), the nodes' root folder, the packages to test. Out: the tests' own output, and their exit code.
// The machine has no network card, sees the cache folder read-only, and writes to memory. It runs under software
// emulation: what it shows is behaviour, never time.
package main
