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
// name. The kernel's end gets the address after the node's, or else the address before.
func tunLine(text string) (string, error) {
	name, addr, ok := strings.Cut(text, "=")
	prefix, err := netip.ParsePrefix(addr)
	if !ok || name == "" || err != nil || prefix.Addr().IsLinkLocalUnicast() {
		return "", fmt.Errorf("--tun %q: must be NAME=ADDR/LEN, such as tun0=10.8.0.1/24", text)
	}
	kernel, ok := otherEnd(prefix)
	if !ok {
		return "", fmt.Errorf("--tun %q: %v has only one address, and the kernel needs "+
			"another: use a shorter prefix, such as /24", text, prefix.Masked())
	}
	return fmt.Sprintf("\ninterface %s %v tun:%s kernel %v\n", name, prefix, name, kernel), nil
}

// otherEnd returns an address for the kernel's end of a link.
func otherEnd(p netip.Prefix) (netip.Addr, bool) {
	for _, a := range []netip.Addr{p.Addr().Next(), p.Addr().Prev()} {
		if a.IsValid() && !a.IsLinkLocalUnicast() && lnx.NeighborFault(a, p) == "" {
			return a, true
		}
	}
	return netip.Addr{}, false
}

// tunAdvice returns the commands, one per line, that the user must run so that the machine has
// routes to the network. It returns nothing if the file already contains the routes.
func tunAdvice(c *lnx.Config) (lines []string) {
	for i := range c.Interfaces {
		f := &c.Interfaces[i]
		if f.Tun == nil {
			continue
		}
		device, err := net.InterfaceByName(f.Tun.Device)
		raised := len(f.Tun.Kernel) > 0 || f.Tun.Auto || f.Tun.Advertise
		if !raised && (err != nil || device.Flags&net.FlagUp == 0) {
			var do []string
			for _, p := range f.Addrs() {
				if kernel, ok := otherEnd(p); ok {
					do = append(do, fmt.Sprintf("sudo ip address add %v/%d dev %s",
						kernel, p.Bits(), f.Tun.Device))
				}
			}
			do = append(do, "sudo ip link set "+f.Tun.Device+" up")
			lines = append(lines, f.Name+": the kernel's end is not up: "+strings.Join(do, " && "))
		}
		if len(f.Tun.Routes) > 0 {
			continue
		}
		for _, p := range behind(c, i) {
			ours := func(a netip.Prefix) bool { return a.Addr().Is4() == p.Addr().Is4() }
			if k := slices.IndexFunc(f.Addrs(), ours); k >= 0 {
				lines = append(lines, fmt.Sprintf(
					"%s: this machine has no route yet: sudo ip route add %v via %v",
					f.Name, p, f.Addrs()[k].Addr()))
			}
		}
		if c.SpeaksRIP() {
			lines = append(lines,
				fmt.Sprintf("%s: do the same for routes from RIP; `routes` lists them",
					f.Name))
		}
	}
	return lines
}

// maxAdvised limits the number of commands for a device.
const maxAdvised = 8

// behind returns the prefixes that a node reaches through interfaces other than except.
func behind(c *lnx.Config, except int) (list []netip.Prefix) {
	for i := range c.Interfaces {
		if f := &c.Interfaces[i]; i != except && f.Tun == nil {
			for _, p := range f.Addrs() {
				list = append(list, p.Masked())
			}
		}
	}
	for _, r := range c.Routes {
		there := func(p netip.Prefix) bool { return p.Contains(r.Via) }
		if f := &c.Interfaces[except]; r.Prefix.Bits() > 0 && r.Via.Zone() != f.Name &&
			!slices.ContainsFunc(f.Addrs(), there) {
			list = append(list, r.Prefix)
		}
	}
	slices.SortFunc(list, netip.Prefix.Compare)
	list = slices.Compact(list)
	return list[:min(len(list), maxAdvised)]
}
