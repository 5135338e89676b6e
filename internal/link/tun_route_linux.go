package link

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"
	"net/netip"
	"strconv"
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

// addRoutes adds the configured routes to the kernel.
func (d *TUN) addRoutes() error {
	if len(d.cfg.Routes) == 0 {
		return nil
	}
	for _, family := range [...]int{unix.AF_INET, unix.AF_INET6} {
		s, err := unix.Socket(family, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
		if err != nil && family == unix.AF_INET {
			return tunError(d.cfg, err, "")
		}
		// The socket stays open, because the routes must be removed in its namespace. A kernel
		// without IPv6 has no second socket.
		d.routeSockets = append(d.routeSockets, s)
	}
	kernel := kernelRoutes()
	for _, p := range d.cfg.Routes {
		err, advice := error(unix.EEXIST), ""
		ours := kernelRoute{d.cfg.Device, d.cfg.gateway(p.Addr())}
		if over, ok := kernel[p]; ok && over == ours {
			continue // root has added the route, and will remove it
		} else if ok { // two routes to a prefix: the kernel would use the newer one
			advice = fmt.Sprintf("this machine routes it over %s: sudo ip route del %v, "+
				"or remove it from `routes`", over.device, p)
		} else if err = d.route(unix.SIOCADDRT, p); err == nil {
			d.routes = append(d.routes, p)
			continue
		}
		if errors.Is(err, unix.EPERM) {
			advice = fmt.Sprintf("CAP_NET_ADMIN is missing; or run by hand: "+
				"sudo ip route add %v via %v", p, ours.gateway)
		}
		d.removeRoutes()
		return tunError(d.cfg, fmt.Errorf("a route to %v: %w", p, err), advice)
	}
	return nil
}

// maxRouteTable limits how many bytes of the kernel's table are read.
const maxRouteTable = 1 << 20

// kernelRoute is a route of the kernel; without a gateway the address is zero.
type kernelRoute struct {
	device  string
	gateway netip.Addr
}

// kernelRoutes returns the kernel's best route for each prefix, or nothing if they cannot be read.
func kernelRoutes() map[netip.Prefix]kernelRoute {
	list := map[netip.Prefix]kernelRoute{}
	routes6(list)
	for _, fields := range procFields("route") {
		// The columns are Iface, Destination, Gateway, Flags, RefCnt, Use, Metric, Mask and others,
		// in the machine's byte order.
		if len(fields) < 8 {
			continue
		}
		dst, err := strconv.ParseUint(fields[1], 16, 32)
		gateway, err2 := strconv.ParseUint(fields[2], 16, 32)
		mask, err3 := strconv.ParseUint(fields[7], 16, 32)
		if err != nil || err2 != nil || err3 != nil {
			continue // the line is the heading
		}
		var a, via [4]byte
		binary.NativeEndian.PutUint32(a[:], uint32(dst))
		binary.NativeEndian.PutUint32(via[:], uint32(gateway))
		p := netip.PrefixFrom(netip.AddrFrom4(a), bits.OnesCount32(uint32(mask)))
		if _, better := list[p]; !better { // the list is sorted by metric
			list[p] = kernelRoute{fields[0], netip.AddrFrom4(via)}
		}
	}
	return list
}

// Raise sets up the kernel's end again, if configured, after it was taken down. Any goroutine may
// call it. The owner then calls Raised.
func (d *TUN) Raise() error {
	if len(d.cfg.Kernel) == 0 {
		return nil
	}
	_, err := setUpKernel(d.cfg)
	return err
}

// Raised adds the routes that the kernel removed when its end went down.
func (d *TUN) Raised() error {
	for _, p := range d.routes {
		if err := d.route(unix.SIOCADDRT, p); err != nil && !errors.Is(err, unix.EEXIST) {
			return tunError(d.cfg, fmt.Errorf("a route to %v: %w", p, err), "")
		}
	}
	d.kernel.down = d.kernel.down && len(d.cfg.Kernel) == 0
	return nil
}

// removeRoutes removes the routes that addRoutes added.
func (d *TUN) removeRoutes() {
	for _, p := range d.routes {
		_ = d.route(unix.SIOCDELRT, p) // the route may be gone already
	}
	for _, s := range d.routeSockets {
		unix.Close(s)
	}
	d.routes, d.routeSockets = nil, nil
}

func (d *TUN) route(request uintptr, p netip.Prefix) error {
	if p.Addr().Is6() {
		return d.route6(d.routeSockets[1], request, p)
	}
	device, err := unix.BytePtrFromString(d.cfg.Device)
	if err != nil {
		return err
	}
	e := routeEntry{
		dst:     unix.RawSockaddrInet4{Family: unix.AF_INET, Addr: p.Masked().Addr().As4()},
		gateway: unix.RawSockaddrInet4{Family: unix.AF_INET, Addr: d.cfg.gateway(p.Addr()).As4()},
		genmask: unix.RawSockaddrInet4{Family: unix.AF_INET, Addr: maskOf(p)},
		flags:   unix.RTF_UP | unix.RTF_GATEWAY, device: device,
	}
	return ioctl(d.routeSockets[0], request, &e)
}
