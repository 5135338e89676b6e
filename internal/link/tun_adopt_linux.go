package link

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// AdoptTUN makes a device of a descriptor of /dev/net/tun that is already attached, for example one
// from another network namespace. OpenTUN has configured the kernel's end there, so cfg.Kernel and
// cfg.Routes must be empty. The device owns the descriptor. If the kernel deletes the device, it
// cannot be reopened. It can be a device of a node's configuration: it is an Attacher.
func AdoptTUN(cfg TUNConfig, fd int) (*TUN, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, tunError(cfg, err, "")
	}
	req, err := unix.NewIfreq("")
	if err != nil {
		return nil, tunError(cfg, err, "")
	}
	if err := unix.IoctlIfreq(fd, unix.TUNGETIFF, req); err != nil {
		return nil, tunError(cfg, os.NewSyscallError("TUNGETIFF", err), "")
	}
	if flags := req.Uint16(); flags&unix.IFF_TUN == 0 || flags&unix.IFF_NO_PI == 0 {
		return nil, tunError(cfg, fmt.Errorf("flags %#x: must be a TUN device without packet "+
			"information", flags), "")
	} else if flags&unix.IFF_VNET_HDR == 0 {
		d := newTUN(cfg, &plainTUN{fd: fd}, fd)
		d.adopted, d.queued = true, cfg.ReadPackets
		return d, nil
	}
	file, err := newVnetTUN(fd)
	if err != nil {
		return nil, tunError(cfg, err, "")
	}
	d := newTUN(cfg, file, fd)
	d.offload, d.adopted, d.queued = OffloadTUNGSO, true, cfg.ReadPackets
	return d, nil
}
