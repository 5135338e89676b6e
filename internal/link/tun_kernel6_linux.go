package link

import (
	"encoding/hex"
	"fmt"
	"io"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// ifreq6 is struct in6_ifreq of linux/ipv6.h.
type ifreq6 struct {
	addr   [16]byte
	length uint32
	index  int32
}

// routeEntry6 is struct in6_rtmsg of linux/ipv6_route.h.
type routeEntry6 struct {
	dst, _, gateway [16]byte
	_               uint32 // type
	length, _       uint16
	_               uint32 // metric
	_               uintptr
	flags           uint32
	index           int32
}

// ioctl executes a request with a struct.
func ioctl[T any](socket int, request uintptr, with *T) error {
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(socket), request,
		uintptr(unsafe.Pointer(with)))
	if errno != 0 {
		return errno
	}
	return nil
}

// indexOf returns the index of a device in the socket's namespace.
func indexOf(socket int, device string) (int32, error) {
	req, err := unix.NewIfreq(device)
	if err != nil {
		return 0, err
	}
	if err := unix.IoctlIfreq(socket, unix.SIOCGIFINDEX, req); err != nil {
		return 0, err
	}
	return int32(req.Uint32()), nil
}

// procFields returns the fields of each line of a file in /proc/net, for this thread's network
// namespace; nil if the file cannot be read.
func procFields(name string) (lines [][]string) {
	f, err := os.Open("/proc/thread-self/net/" + name)
	if err != nil {
		return nil
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxRouteTable))
	if err != nil {
		return nil
	}
	for line := range strings.Lines(string(text)) {
		lines = append(lines, strings.Fields(line))
	}
	return lines
}

// prefixOf6 parses an address and a prefix length as the kernel prints them.
func prefixOf6(addr, length string) netip.Prefix {
	b, err := hex.DecodeString(addr)
	bits, err2 := strconv.ParseUint(length, 16, 8)
	if a, ok := netip.AddrFromSlice(b); ok && err == nil && err2 == nil {
		return netip.PrefixFrom(a, int(bits))
	}
	return netip.Prefix{}
}

// awaitAddresses6 waits until the kernel uses its IPv6 addresses. Until then it drops packets.
func (k kernelEnd) awaitAddresses6() {
	tentative := func(f []string) bool { // fields: address, index, length, scope, flags, device
		flags, err := strconv.ParseUint(f[4], 16, 32)
		return f[5] == k.device && err == nil && flags&unix.IFA_F_TENTATIVE != 0
	}
	for end := time.Now().Add(carrierTime); time.Now().Before(end); time.Sleep(time.Millisecond) {
		if !slices.ContainsFunc(procFields("if_inet6"), tentative) {
			return
		}
	}
}

// address6 adds an IPv6 address.
func (k kernelEnd) address6(kernel netip.Prefix) error {
	s, err := unix.Socket(unix.AF_INET6, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("set IPv6 address: %w", err)
	}
	defer unix.Close(s)
	req := ifreq6{addr: kernel.Addr().As16(), length: uint32(kernel.Bits())}
	if req.index, err = indexOf(s, k.device); err == nil {
		err = ioctl(s, unix.SIOCSIFADDR, &req)
	}
	if err != nil {
		return fmt.Errorf("set IPv6 address: %w", err)
	}
	return nil
}

// routes6 adds the kernel's IPv6 routes to list.
func routes6(list map[netip.Prefix]kernelRoute) {
	// The fields are the destination, its length, the source, its length, the gateway, the metric,
	// two counters, flags, and the device.
	for _, f := range procFields("ipv6_route") {
		if len(f) != 10 || f[9] == "lo" {
			continue
		}
		if p := prefixOf6(f[0], f[1]); p.IsValid() && list[p].device == "" {
			list[p] = kernelRoute{f[9], prefixOf6(f[4], "80").Addr()}
		}
	}
}

// route6 adds or removes an IPv6 route.
func (d *TUN) route6(socket int, request uintptr, p netip.Prefix) error {
	e := routeEntry6{
		dst: p.Masked().Addr().As16(), length: uint16(p.Bits()),
		gateway: d.cfg.gateway(p.Addr()).As16(), flags: unix.RTF_UP | unix.RTF_GATEWAY,
	}
	var err error
	if e.index, err = indexOf(socket, d.cfg.Device); err != nil {
		return err
	}
	return ioctl(socket, request, &e)
}
