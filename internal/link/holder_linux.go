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

// Holder returns the process that uses a UDP port of this machine ("udp") or listens on a TCP port
// ("tcp"), such as "process 4711 (node run A.lnx)". It returns "" if it cannot find the process,
// for example because the process is another user's.
func Holder(network string, at netip.AddrPort) string {
	sockets := slices.Concat(boundSockets(network, at), boundSockets(network+"6", at))
	if len(sockets) == 0 {
		return ""
	}
	files, _ := filepath.Glob("/proc/[0-9]*/fd/*") // the pattern is valid
	for _, path := range files {
		if to, err := os.Readlink(path); err != nil || !slices.Contains(sockets, to) {
			continue
		}
		process := filepath.Dir(filepath.Dir(path))
		return "process " + filepath.Base(process) + " (" + commandLine(process) + ")"
	}
	return ""
}

// boundSockets returns the sockets in a kernel table that are bound to at or to all addresses.
func boundSockets(table string, at netip.AddrPort) (sockets []string) {
	text, err := os.ReadFile("/proc/net/" + table)
	if err != nil {
		return nil
	}
	for line := range strings.Lines(string(text)) {
		const local, state, inode = 1, 3, 9 // columns of proc_net_udp(5) and proc_net_tcp(5)
		const listens = "0A"
		f := strings.Fields(line)
		if len(f) <= inode || strings.HasPrefix(table, "tcp") && f[state] != listens {
			continue
		}
		bound, ok := kernelAddr(f[local])
		if ok && bound.Port() == at.Port() && (bound.Addr() == at.Addr() ||
			bound.Addr().IsUnspecified() || at.Addr().IsUnspecified()) {
			sockets = append(sockets, "socket:["+f[inode]+"]")
		}
	}
	return sockets
}

// kernelAddr parses an address of the kernel's tables: 0100007F:13C4 is 127.0.0.1:5060. An IPv6
// address has four such words.
func kernelAddr(text string) (netip.AddrPort, bool) {
	ip, port, _ := strings.Cut(text, ":")
	n, err := strconv.ParseUint(port, 16, 16)
	if err != nil || len(ip)%8 != 0 {
		return netip.AddrPort{}, false
	}
	var b []byte
	for word := range slices.Chunk([]byte(ip), 8) {
		a, err := strconv.ParseUint(string(word), 16, 32)
		if err != nil {
			return netip.AddrPort{}, false
		}
		b = binary.NativeEndian.AppendUint32(b, uint32(a)) // the machine's byte order
	}
	addr, ok := netip.AddrFromSlice(b)
	return netip.AddrPortFrom(addr.Unmap(), uint16(n)), ok
}

// commandLine returns a process's command line, shortened and without control characters.
func commandLine(process string) string {
	const most = 160
	text, err := os.ReadFile(filepath.Join(process, "cmdline"))
	if err != nil {
		return "the process has ended"
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
