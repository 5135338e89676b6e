package link

import (
	"errors"

	"golang.org/x/sys/unix"
)

// Probe tests the kernel's features, and changes nothing.
func Probe() (f Features) {
	if fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0); err == nil {
		_, noGSO := unix.GetsockoptInt(fd, unix.IPPROTO_UDP, unix.UDP_SEGMENT)
		f.GSO = noGSO == nil
		f.GRO = unix.SetsockoptInt(fd, unix.IPPROTO_UDP, unix.UDP_GRO, 1) == nil
		_ = unix.Close(fd)
	}
	fd, err := unix.Open(tunPath, unix.O_RDWR|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		f.TUNProblem = tunPath + ": " + err.Error()
		return f
	}
	defer func() { _ = unix.Close(fd) }()
	features, err := unix.IoctlGetInt(fd, unix.TUNGETFEATURES)
	f.VNet = err == nil && features&unix.IFF_VNET_HDR != 0
	request, err := unix.NewIfreq("") // the kernel chooses a name
	if err == nil {
		request.SetUint16(unix.IFF_TUN | unix.IFF_NO_PI)
		err = unix.IoctlIfreq(fd, unix.TUNSETIFF, request) // closing fd deletes the device
	}
	switch {
	case err == nil:
		f.TUN = true
	case errors.Is(err, unix.EPERM):
		f.TUNProblem = "CAP_NET_ADMIN is missing; devices that root created for this user " +
			"can be opened"
	default:
		f.TUNProblem = err.Error()
	}
	return f
}
