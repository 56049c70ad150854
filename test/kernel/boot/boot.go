// Package boot is what the program that starts the virtual machine and the machine's first program have in common:
// names of folders, files and shares, and the orders.
package boot

// The two folders of the outer machine, by their 9p mount tags.
const (
	CacheTag = "cache" // $EGRET_CACHE, read-only: root folder, images, kernel modules
	ShareTag = "share" // programs, tests and orders; the status comes back in it
)

// Where they are in the machine.
const (
	Cache = "/var/cache/egret"
	Share = "/opt/egret-kernel"
)

// Files of the share.
const (
	OrdersFile = "orders.json"
	StatusFile = "status"
)

// Modules is the initial root folder's folder of kernel modules, named in the order in which they are to be loaded.
const Modules = "modules"

// Folders are those of the initial root folder.
func Folders() []string { return []string{"dev", "cache", "disk", "root", Modules} }

// Orders are what the machine is to do.
type Orders struct {
	KernelVersion string `json:"kernelVersion"`
	Tests         []Test `json:"tests"`
}

// Test is a test program in the share's folder tests.
type Test struct {
	Package string `json:"package"`
	File    string `json:"file"`
	Run     string `json:"run"` // as go test -run
}
