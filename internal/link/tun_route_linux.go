package link

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/bits"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// routeEntry is struct rtentry of linux/route.h.
type routeEntry struct {
	_                     uintptr
	dst, gateway, genmask unix.RawSockaddrInet4
	flags                 uint16
	_                     int16
	_                     uintptr
	_                     unsafe.Pointer
	_                     int16 // metric
	device                *byte
	_, _/* mtu, window */ uintptr
	_/* initial round trip */ uint16
}

// tellRoutes adds the configured routes to the kernel.
func (d *TUN) tellRoutes() error {
	if len(d.cfg.Routes) == 0 {
		return nil
	}
	s, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return tunError(d.cfg, err, "")
	}
	d.teller = s // it stays open, because the routes must be removed in its namespace
	there := kernelRoutes()
	ours := kernelRoute{device: d.cfg.Device, gateway: d.cfg.Interface.Local.As4()}
	for _, p := range d.cfg.Routes {
		err, advice := error(unix.EEXIST), ""
		if over, ok := there[p]; ok && over == ours {
			continue // root has added the route, and removes it
		} else if ok { // the kernel would have two routes and use the newer
			advice = fmt.Sprintf("this machine routes it over %s: sudo ip route del %v, "+
				"or remove it from `routes`", over.device, p)
		} else if err = d.route(unix.SIOCADDRT, p); err == nil {
			d.routes = append(d.routes, p)
			continue
		}
		if errors.Is(err, unix.EPERM) {
			advice = fmt.Sprintf("CAP_NET_ADMIN is missing; or run by hand: "+
				"sudo ip route add %v via %v", p, d.cfg.Interface.Local)
		}
		d.forgetRoutes()
		return tunError(d.cfg, fmt.Errorf("a route to %v: %w", p, err), advice)
	}
	return nil
}

// maxRouteTable limits how many bytes of the kernel's table are read.
const maxRouteTable = 1 << 20

// kernelRoute is a route of the kernel; without a gateway the address is zero.
type kernelRoute struct {
	device  string
	gateway [4]byte
}

// kernelRoutes returns the kernel's best route for each prefix; none if they cannot be read.
func kernelRoutes() map[netip.Prefix]kernelRoute {
	f, err := os.Open("/proc/thread-self/net/route")
	if err != nil {
		return nil
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxRouteTable))
	if err != nil {
		return nil
	}
	list := map[netip.Prefix]kernelRoute{}
	for line := range strings.Lines(string(text)) {
		// Iface Destination Gateway Flags RefCnt Use Metric Mask …, in the machine's byte order.
		fields := strings.Fields(line)
		if len(fields) < 8 {
			continue
		}
		dst, err := strconv.ParseUint(fields[1], 16, 32)
		gateway, err2 := strconv.ParseUint(fields[2], 16, 32)
		mask, err3 := strconv.ParseUint(fields[7], 16, 32)
		if err != nil || err2 != nil || err3 != nil {
			continue // the heading
		}
		var a [4]byte
		binary.NativeEndian.PutUint32(a[:], uint32(dst))
		p := netip.PrefixFrom(netip.AddrFrom4(a), bits.OnesCount32(uint32(mask)))
		if _, better := list[p]; better { // sorted by metric
			continue
		}
		to := kernelRoute{device: fields[0]}
		binary.NativeEndian.PutUint32(to.gateway[:], uint32(gateway))
		list[p] = to
	}
	return list
}

// Raise sets up the kernel's end again, if configured, after it was taken down. Any goroutine may
// call it. The owner then calls Raised.
func (d *TUN) Raise() error {
	if !d.cfg.Kernel.IsValid() {
		return nil
	}
	_, err := setUpKernel(d.cfg)
	return err
}

// Raised adds the routes again, which the kernel removed when its end went down.
func (d *TUN) Raised() error {
	for _, p := range d.routes {
		if err := d.route(unix.SIOCADDRT, p); err != nil && !errors.Is(err, unix.EEXIST) {
			return tunError(d.cfg, fmt.Errorf("a route to %v: %w", p, err), "")
		}
	}
	d.kernel.down = d.kernel.down && !d.cfg.Kernel.IsValid()
	return nil
}

// forgetRoutes removes the routes that tellRoutes added.
func (d *TUN) forgetRoutes() {
	for _, p := range d.routes {
		_ = d.route(unix.SIOCDELRT, p) // it may be gone already
	}
	if len(d.cfg.Routes) > 0 && d.teller >= 0 {
		unix.Close(d.teller)
	}
	d.routes, d.teller = nil, -1
}

func (d *TUN) route(request uintptr, p netip.Prefix) error {
	device, err := unix.BytePtrFromString(d.cfg.Device)
	if err != nil {
		return err
	}
	e := routeEntry{
		dst:     unix.RawSockaddrInet4{Family: unix.AF_INET, Addr: p.Masked().Addr().As4()},
		gateway: unix.RawSockaddrInet4{Family: unix.AF_INET, Addr: d.cfg.Interface.Local.As4()},
		genmask: unix.RawSockaddrInet4{Family: unix.AF_INET, Addr: maskOf(p)},
		flags:   unix.RTF_UP | unix.RTF_GATEWAY, device: device,
	}
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(d.teller), request,
		uintptr(unsafe.Pointer(&e)))
	if errno != 0 {
		return errno
	}
	return nil
}
