package main

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"

	"github.com/tidepool-net/tidepool/internal/lnx"
)

// tunLine converts --tun NAME=ADDR/LEN to a line of an .lnx file. The device has the interface's
// name, and the kernel's end gets the address after the node's, or the one before.
func tunLine(text string) (string, error) {
	name, addr, ok := strings.Cut(text, "=")
	prefix, err := netip.ParsePrefix(addr)
	if !ok || name == "" || err != nil || !prefix.Addr().Is4() {
		return "", fmt.Errorf("--tun %q: must be NAME=ADDR/LEN, such as tun0=10.8.0.1/24", text)
	}
	kernel, ok := otherEnd(prefix)
	if !ok {
		return "", fmt.Errorf("--tun %q: %v has no second address for the kernel's end",
			text, prefix.Masked())
	}
	return fmt.Sprintf("\ninterface %s %v tun:%s kernel %v\n", name, prefix, name, kernel), nil
}

// otherEnd returns an address for the kernel's end of a link.
func otherEnd(p netip.Prefix) (netip.Addr, bool) {
	for _, a := range []netip.Addr{p.Addr().Next(), p.Addr().Prev()} {
		if a.IsValid() && lnx.NeighborFault(a, p) == "" {
			return a, true
		}
	}
	return netip.Addr{}, false
}

// tunAdvice returns the commands, one in a line, that the user must still run so that the machine
// has routes to the network. It is empty if the file contains everything.
func tunAdvice(c *lnx.Config) (lines []string) {
	for i := range c.Interfaces {
		f := &c.Interfaces[i]
		if f.Tun == nil {
			continue
		}
		if !f.Tun.Kernel.IsValid() && !isUp(f.Tun.Device) {
			if kernel, ok := otherEnd(f.Addr); ok {
				lines = append(lines, fmt.Sprintf(
					"%s: the kernel's end is not up: sudo ip address add %v/%d dev %s && "+
						"sudo ip link set %s up",
					f.Name, kernel, f.Addr.Bits(), f.Tun.Device, f.Tun.Device))
			}
		}
		if len(f.Tun.Routes) > 0 {
			continue
		}
		for _, p := range behind(c, i) {
			lines = append(lines, fmt.Sprintf(
				"%s: this machine has no route yet: sudo ip route add %v via %v",
				f.Name, p, f.Addr.Addr()))
		}
		if c.Routing == lnx.RoutingRIP || c.Routing == lnx.RoutingRIP2 {
			lines = append(lines, fmt.Sprintf("%s: likewise for routes from RIP; see `routes`",
				f.Name))
		}
	}
	return lines
}

// maxAdvised limits the commands for a device.
const maxAdvised = 8

// behind returns the prefixes that a node reaches through its other interfaces.
func behind(c *lnx.Config, except int) (list []netip.Prefix) {
	for i := range c.Interfaces {
		if f := &c.Interfaces[i]; i != except && f.Tun == nil {
			list = append(list, f.Network())
		}
	}
	for _, r := range c.Routes {
		if r.Prefix.Bits() > 0 && !c.Interfaces[except].Network().Contains(r.Via) {
			list = append(list, r.Prefix)
		}
	}
	slices.SortFunc(list, func(a, b netip.Prefix) int {
		if d := a.Addr().Compare(b.Addr()); d != 0 {
			return d
		}
		return a.Bits() - b.Bits()
	})
	list = slices.Compact(list)
	return list[:min(len(list), maxAdvised)]
}

func isUp(device string) bool {
	f, err := net.InterfaceByName(device)
	return err == nil && f.Flags&net.FlagUp != 0
}
