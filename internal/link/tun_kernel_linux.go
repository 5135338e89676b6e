package link

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

// setUpKernel configures the MTU, the queue and, if set, the addresses of the kernel's end. Then it
// brings the kernel's end up. It does not change settings that are already right, so that a user
// without privileges can use a device that root has configured. It returns the length of the
// kernel's queue; 0: unknown. Without addresses or Up, it fails only if it cannot open a socket.
func setUpKernel(cfg TUNConfig) (queued int, err error) {
	s, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0, tunError(cfg, err, "")
	}
	defer unix.Close(s)
	k := kernelEnd{device: cfg.Device, socket: s}
	_ = k.number("set queue length", unix.SIOCSIFTXQLEN, cfg.ReadPackets) // a short queue works too
	err = k.mtu(cfg.Interface.MTU)
	if len(cfg.Kernel) > 0 || cfg.Up {
		// Without this setting, the kernel would also look for IPv6 routers on a link without IPv6.
		// A kernel without IPv6 has no such file.
		disable := []byte("1")
		if cfg.Up || slices.ContainsFunc(cfg.locals(), netip.Addr.Is6) {
			disable = []byte("0")
		}
		_ = os.WriteFile("/proc/sys/net/ipv6/conf/"+cfg.Device+"/disable_ipv6", disable, 0)
		for _, a := range cfg.Kernel {
			if !k.has(a) {
				err = errors.Join(err, k.address(a, cfg.Interface.Local))
			}
		}
		if err = errors.Join(err, k.up()); err != nil {
			return 0, tunError(cfg, err, setUpAdvice(cfg, err))
		}
	}
	k.awaitCarrier()
	k.awaitAddresses6()
	return k.queue(), nil
}

// carrierTime is a little more than Linux needs to detect that a device that was already up has an
// owner again. Until then Linux drops packets.
const carrierTime = 1200 * time.Millisecond

// awaitCarrier waits until the kernel uses a device that is up.
func (k kernelEnd) awaitCarrier() {
	for end := time.Now().Add(carrierTime); time.Now().Before(end); time.Sleep(time.Millisecond) {
		f, err := net.InterfaceByName(k.device)
		if err != nil || f.Flags&net.FlagUp == 0 || f.Flags&net.FlagRunning != 0 {
			return
		}
	}
}

// kernelEnd is the kernel's end of a device (netdevice(7)).
type kernelEnd struct {
	device string
	socket int
}

func (k kernelEnd) do(what string, request uint, fill func(*unix.Ifreq)) error {
	req, err := unix.NewIfreq(k.device)
	if err != nil {
		return err
	}
	fill(req)
	if err := unix.IoctlIfreq(k.socket, request, req); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}

func (k kernelEnd) number(what string, request uint, n int) error {
	return k.do(what, request, func(r *unix.Ifreq) { r.SetUint32(uint32(n)) })
}

func (k kernelEnd) mtu(want int) error {
	if f, err := net.InterfaceByName(k.device); err == nil && f.MTU == want {
		return nil
	}
	return k.number("set MTU", unix.SIOCSIFMTU, want)
}

// has reports whether the device has an address.
func (k kernelEnd) has(want netip.Prefix) bool {
	f, err := net.InterfaceByName(k.device)
	if err != nil {
		return false
	}
	list, _ := f.Addrs() // without the list, the caller adds the address
	return slices.ContainsFunc(list, func(a net.Addr) bool { return a.String() == want.String() })
}

func maskOf(p netip.Prefix) [4]byte {
	mask := ^uint32(0) << (32 - p.Bits())
	return [4]byte{byte(mask >> 24), byte(mask >> 16), byte(mask >> 8), byte(mask)}
}

// address adds an IPv6 address, or sets the IPv4 address and mask. A new IPv4 address replaces the
// device's old ones. With a /32 prefix, the node's address is set as the peer.
func (k kernelEnd) address(kernel netip.Prefix, node netip.Addr) error {
	if kernel.Addr().Is6() {
		return k.address6(kernel)
	}
	set := func(what string, request uint, a [4]byte) error {
		return k.do(what, request, func(r *unix.Ifreq) {
			if err := r.SetInet4Addr(a[:]); err != nil {
				panic("BUG: link: " + err.Error()) // four bytes are always an address
			}
		})
	}
	if err := set("set address", unix.SIOCSIFADDR, kernel.Addr().As4()); err != nil {
		return err
	}
	if kernel.Bits() == kernel.Addr().BitLen() {
		return set("set peer address", unix.SIOCSIFDSTADDR, node.As4())
	}
	return set("set netmask", unix.SIOCSIFNETMASK, maskOf(kernel))
}

// up brings the device up and keeps its other flags.
func (k kernelEnd) up() error {
	req, err := unix.NewIfreq(k.device)
	if err != nil {
		return err
	}
	if err := unix.IoctlIfreq(k.socket, unix.SIOCGIFFLAGS, req); err != nil {
		return fmt.Errorf("read interface flags: %w", err)
	}
	flags := req.Uint16() | unix.IFF_UP
	if flags == req.Uint16() {
		return nil
	}
	return k.do("bring up", unix.SIOCSIFFLAGS, func(r *unix.Ifreq) { r.SetUint16(flags) })
}

// queue returns the length of the kernel's queue; 0: unknown.
func (k kernelEnd) queue() int {
	req, err := unix.NewIfreq(k.device)
	if err != nil || unix.IoctlIfreq(k.socket, unix.SIOCGIFTXQLEN, req) != nil {
		return 0
	}
	return int(req.Uint32())
}
