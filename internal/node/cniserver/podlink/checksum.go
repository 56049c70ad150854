package podlink

import (
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// ethtoolValue is struct ethtool_value of linux/ethtool.h.
type ethtoolValue struct{ cmd, data uint32 }

// ifreqPointer is struct ifreq with ifr_data: a name and a pointer in a union of 24 bytes.
type ifreqPointer struct {
	name [unix.IFNAMSIZ]byte
	data unsafe.Pointer
	_    [24 - unsafe.Sizeof(uintptr(0))]byte
}

// DisableTxChecksum does what `ethtool -K <name> tx off` does; segmentation offload, which needs it, goes with it. On a
// veth the kernel else leaves checksums empty, and OVS' userspace datapath passes packets on so.
func DisableTxChecksum(name string) error {
	_, err := callEthtool(name, ethtoolValue{cmd: unix.ETHTOOL_STXCSUM, data: 0})
	return err
}

// txChecksum says whether the interface leaves checksums to a device.
func txChecksum(name string) (bool, error) {
	v, err := callEthtool(name, ethtoolValue{cmd: unix.ETHTOOL_GTXCSUM})
	return v.data != 0, err
}

func callEthtool(name string, v ethtoolValue) (ethtoolValue, error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return v, err
	}
	defer unix.Close(fd)
	request := ifreqPointer{data: unsafe.Pointer(&v)}
	copy(request.name[:unix.IFNAMSIZ-1], name)
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.SIOCETHTOOL, uintptr(unsafe.Pointer(&request)))
	runtime.KeepAlive(&v)
	if errno != 0 {
		return v, errno
	}
	return v, nil
}
