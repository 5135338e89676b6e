package link

import (
	"encoding/binary"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// holder tells which process has a UDP address of this machine: "process 4711 (node run A.lnx)".
// Empty: it is not to be seen, for it is somebody else's, say.
func holder(at netip.AddrPort) string {
	table, err := os.ReadFile("/proc/net/udp")
	if err != nil {
		return ""
	}
	var sockets []string
	for line := range strings.Lines(string(table)) {
		const local, inode = 1, 9 // proc_net_udp(5)
		f := strings.Fields(line)
		if len(f) <= inode {
			continue
		}
		bound, ok := kernelAddr(f[local])
		if ok && bound.Port() == at.Port() && (bound.Addr() == at.Addr() ||
			bound.Addr().IsUnspecified() || at.Addr().IsUnspecified()) {
			sockets = append(sockets, "socket:["+f[inode]+"]")
		}
	}
	files, _ := filepath.Glob("/proc/[0-9]*/fd/*") // the pattern is right
	for _, path := range files {
		if to, err := os.Readlink(path); err != nil || !slices.Contains(sockets, to) {
			continue
		}
		process := filepath.Dir(filepath.Dir(path))
		return "process " + filepath.Base(process) + " (" + commandLine(process) + ")"
	}
	return ""
}

// kernelAddr reads an address as the kernel's table has it: 0100007F:13C4 is 127.0.0.1:5060.
func kernelAddr(text string) (netip.AddrPort, bool) {
	ip, port, _ := strings.Cut(text, ":")
	a, err := strconv.ParseUint(ip, 16, 32)
	n, bad := strconv.ParseUint(port, 16, 16)
	if err != nil || bad != nil {
		return netip.AddrPort{}, false
	}
	var b [4]byte
	binary.NativeEndian.PutUint32(b[:], uint32(a)) // as the machine has it
	return netip.AddrPortFrom(netip.AddrFrom4(b), uint16(n)), true
}

// commandLine is that of a process, not too long and in one line.
func commandLine(process string) string {
	const most = 160
	text, err := os.ReadFile(filepath.Join(process, "cmdline"))
	if err != nil {
		return "it has ended"
	}
	line := []rune(strings.TrimSpace(strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, string(text))))
	if len(line) > most {
		line = append(line[:most], '…')
	}
	return string(line)
}
