package lnx

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"time"
)

// These texts describe values in errors.
const (
	wantAddr     = "an address, such as 10.0.0.1 or 2001:db8::1"
	wantAddr4    = "an IPv4 address, such as 10.0.0.1"
	wantAddrLen  = "ADDR/LEN, such as 10.0.0.1/24 or 2001:db8::1/64"
	wantPrefix   = "PREFIX/LEN, such as 10.1.0.0/16 or 2001:db8:1::/48"
	wantAddrPort = "ADDR:PORT, such as 10.1.0.2:80 or [2001:db8::2]:80"
	wantHostPort = "HOST:PORT, such as 127.0.0.1:5000 or [::1]:5000"
	wantHost     = "an IPv4 address or a host name"
	wantPort     = "a port from 1 to 65535"
	wantName     = "a letter, then up to 14 letters, digits and any of . _ -"
	wantShare    = "a percentage from 0% to 100%, such as 2% or 0.5%"
	wantDuration = "a number with its unit from 0s to 1m, such as 5ms or 250us"
	wantRate     = "a number with its unit bit, kbit, mbit or gbit, such as 10mbit"
)

const (
	minMTU6      = 1280 // smallest MTU of IPv6 (RFC 8200 §5)
	maxNameChars = 15   // the limit of Linux
	maxHostChars = 253
	maxDelay     = time.Minute
	maxRateBits  = 1_000_000_000_000
)

// addr reads a virtual address.
func (r *report) addr(w Word) (netip.Addr, bool) {
	a, err := netip.ParseAddr(w.Text)
	if err != nil {
		r.bad(w, "not an address", wantAddr)
		return netip.Addr{}, false
	}
	return r.usable(w, a)
}

func (r *report) addr4(w Word) (netip.Addr, bool) {
	a, err := netip.ParseAddr(w.Text)
	if err != nil || !a.Is4() {
		r.bad(w, "not an IPv4 address", wantAddr4)
		return netip.Addr{}, false
	}
	return r.usable(w, a)
}

// nextHop is like addr, but accepts a zone, which a link-local next hop needs.
func (r *report) nextHop(w Word) (netip.Addr, bool) {
	a, err := netip.ParseAddr(w.Text)
	if err == nil && a.Is6() && a.IsLinkLocalUnicast() {
		if a.Zone() == "" {
			r.bad(w, "a link-local address without an interface", w.Text+"%NAME")
		}
		return a, a.Zone() != ""
	}
	return r.addr(w)
}

func (r *report) usable(w Word, a netip.Addr) (netip.Addr, bool) {
	if why := unusable(a); why != "" {
		r.bad(w, why, "a unicast address")
		return netip.Addr{}, false
	}
	return a, true
}

// unusable returns the reason why an address cannot be a node's address, or "".
func unusable(a netip.Addr) string {
	first := byte(1)
	if a.Is4() {
		first = a.As4()[0]
	}
	switch {
	case a.Zone() != "":
		return "an address with a zone"
	case a.Is4In6():
		return "an IPv4-mapped address, which is never on a link"
	case a.Is6() && a.IsUnspecified():
		return "the unspecified address"
	case first == 0:
		return "of 0.0.0.0/8, which no node can use"
	case a.IsLoopback():
		return "a loopback address"
	case a.IsMulticast():
		return "a multicast address"
	case first >= 240:
		return "of 240.0.0.0/4, which no node can use"
	}
	return ""
}

// split parses ADDR/LEN. The caller checks whether the address is usable.
func (r *report) split(w Word, want string) (netip.Prefix, bool) {
	host, length, found := strings.Cut(w.Text, "/")
	if !found {
		r.bad(w, "missing a prefix length", want)
		return netip.Prefix{}, false
	}
	a, err := netip.ParseAddr(host)
	if err != nil || a.Zone() != "" {
		r.bad(part(w, 0, host), "not an address", want)
		return netip.Prefix{}, false
	}
	n, err := strconv.ParseUint(length, 10, 8)
	if err != nil || n > uint64(a.BitLen()) {
		r.bad(part(w, len(host)+1, length), "not a prefix length",
			fmt.Sprintf("0 to %d", a.BitLen()))
		return netip.Prefix{}, false
	}
	return netip.PrefixFrom(a, int(n)), true
}

// part returns the part of a word that begins at a byte offset and contains text, even if empty.
func part(w Word, offset int, text string) Word {
	pos := w.Pos
	pos.Col += len([]rune(w.Text[:offset]))
	return Word{text, pos}
}

// addrLen reads an interface's address with its prefix length.
func (r *report) addrLen(w Word) (netip.Prefix, bool) {
	prefix, ok := r.split(w, wantAddrLen)
	if !ok {
		return prefix, false
	}
	host, length, _ := strings.Cut(w.Text, "/")
	if why := unusable(prefix.Addr()); why != "" {
		r.bad(part(w, 0, host), why, "a unicast address")
		return prefix, false
	}
	if prefix.Bits() == 0 {
		r.bad(part(w, len(host)+1, length), "not a subnet's length",
			fmt.Sprintf("1 to %d", prefix.Addr().BitLen()))
		return prefix, false
	}
	if why := reserved(prefix.Addr(), prefix.Masked()); why != "" {
		r.bad(part(w, 0, host), why, "an address of a node")
		return prefix, false
	}
	return prefix, true
}

// AddrFault returns the reason why an interface cannot have an address with this prefix length, or
// "". The prefix must be valid.
func AddrFault(p netip.Prefix) string {
	if why := unusable(p.Addr()); why != "" {
		return why
	}
	if p.Bits() == 0 {
		return fmt.Sprintf("missing a subnet, of 1 to %d bits", p.Addr().BitLen())
	}
	return reserved(p.Addr(), p.Masked())
}

// NeighborFault returns the reason why a neighbor on an interface cannot have an address, or "".
func NeighborFault(a netip.Addr, on netip.Prefix) string {
	if why := unusable(a); why != "" {
		return why
	}
	subnet := on.Masked()
	switch {
	case a == on.Addr():
		return "the interface itself"
	case !subnet.Contains(a):
		return "not in the link's prefix " + subnet.String()
	}
	return reserved(a, subnet)
}

// reserved returns the reason why no interface in a subnet may have the address a, or "". Subnets
// of one or two addresses have no reserved addresses (RFC 3021, RFC 6164 §5).
func reserved(a netip.Addr, subnet netip.Prefix) string {
	if subnet.Bits() >= a.BitLen()-1 {
		return ""
	}
	if a.Is6() {
		if a == subnet.Addr() {
			return "the address of all routers of " + subnet.String() // RFC 4291 §2.6.1
		}
		return ""
	}
	switch a {
	case subnet.Addr():
		return "the address of the subnet " + subnet.String() + " itself"
	case broadcast(subnet):
		return "the broadcast address of " + subnet.String()
	}
	return ""
}

func broadcast(subnet netip.Prefix) netip.Addr {
	b := subnet.Addr().As4()
	for bit := subnet.Bits(); bit < 32; bit++ {
		b[bit/8] |= 0x80 >> (bit % 8)
	}
	return netip.AddrFrom4(b)
}

// prefix reads the prefix of a destination, which must not have host bits.
func (r *report) prefix(w Word) (netip.Prefix, bool) {
	prefix, ok := r.split(w, wantPrefix)
	if ok && prefix != prefix.Masked() {
		r.bad(w, "a prefix with host bits", prefix.Masked().String())
		return prefix, false
	}
	if ok && prefix.Addr().Is4In6() {
		r.bad(w, "a prefix of IPv4-mapped addresses", "an IPv4 prefix")
		return prefix, false
	}
	return prefix, ok
}

// hostPort reads the HOST:PORT of this node. The host may be an IPv6 address in brackets.
func (r *report) hostPort(w Word) (HostPort, bool) {
	return r.endpoint(w, wantHostPort, func(host Word) (string, bool) {
		return r.bracketed(host, r.host)
	})
}

// destination reads the HOST:PORT of another node, in the same form as hostPort.
func (r *report) destination(w Word) (HostPort, bool) {
	to, ok := r.endpoint(w, wantHostPort, func(host Word) (string, bool) {
		return r.bracketed(host, r.remoteHost)
	})
	if to.Host == "::" {
		r.bad(w, "an address to which nothing can be sent", wantHost)
		return to, false
	}
	return to, ok
}

// bracketed reads an IPv6 address in brackets. The function read reads all other hosts.
func (r *report) bracketed(w Word, read func(Word) (string, bool)) (string, bool) {
	inner := unbracket(w)
	switch a, err := netip.ParseAddr(inner.Text); {
	case inner == w:
		return read(w)
	case err != nil || !a.Is6() || a.Is4In6() || a.IsMulticast():
		r.bad(inner, "not an IPv6 address of a machine", wantHostPort)
	case a.Zone() != "" || a.IsLinkLocalUnicast():
		r.bad(inner, "an address of one link of the machine", "a global address, or [::1]")
	default:
		return a.String(), true
	}
	return "", false
}

// endpoint reads HOST:PORT. The function readHost reads the host with its brackets.
func (r *report) endpoint(
	w Word, want string, readHost func(Word) (string, bool),
) (HostPort, bool) {
	i := strings.LastIndexByte(w.Text, ':')
	if i < 0 || strings.HasSuffix(w.Text, "]") {
		r.bad(w, "missing a port", want)
		return HostPort{}, false
	}
	at := part(w, 0, w.Text[:i])
	if strings.Contains(at.Text, ":") && at.Text[0] != '[' {
		r.bad(at, "an IPv6 address without brackets", want)
		return HostPort{}, false
	}
	host, okHost := readHost(at)
	port, okPort := r.port(part(w, i+1, w.Text[i+1:]))
	return HostPort{host, port}, okHost && okPort
}

// host reads an IPv4 address or a host name. A name whose last label is a number counts as an
// invalid address (RFC 1123 §2.1).
func (r *report) host(w Word) (string, bool) {
	if _, err := netip.ParseAddr(w.Text); err == nil && !strings.Contains(w.Text, ":") {
		return w.Text, true
	}
	last := w.Text[strings.LastIndexByte(w.Text, '.')+1:]
	switch {
	case w.Text == "":
		r.add(w.Pos, "", "the host is missing", wantHost)
	case w.Text+":" == tunPrefix: // "tun:PORT" would name a device
		r.bad(w, "the keyword of a TUN device", wantHost)
	case len(w.Text) > maxHostChars, !consistsOf(w.Text, ".-_"), isNumber(last),
		strings.Contains("."+w.Text+".", ".."):
		r.bad(w, "not a host", wantHost)
	default:
		return w.Text, true
	}
	return "", false
}

func (r *report) port(w Word) (uint16, bool) {
	n, err := strconv.ParseUint(w.Text, 10, 16)
	if err != nil || n == 0 {
		r.bad(w, "not a port", wantPort)
		return 0, false
	}
	return uint16(n), true
}

func (r *report) name(w Word) (string, bool) {
	if len(w.Text) > maxNameChars || !consistsOf(w.Text, "._-") || !isLetter(rune(w.Text[0])) {
		r.bad(w, "not a name", wantName)
		return "", false
	}
	return w.Text, true
}

// consistsOf reports whether s is not empty and contains only ASCII letters, digits and the
// characters in others.
func consistsOf(s, others string) bool {
	for _, r := range s {
		if !isLetter(r) && (r < '0' || r > '9') && !strings.ContainsRune(others, r) {
			return false
		}
	}
	return s != ""
}

func isLetter(r rune) bool { return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' }

// number reads a decimal number from least to most. The unit appears in the error.
func (r *report) number(w Word, least, most uint64, unit string) (int, bool) {
	want := fmt.Sprintf("%d to %d%s", least, most, unit)
	if !isNumber(w.Text) {
		r.bad(w, "not a whole number", want)
		return 0, false
	}
	n, err := strconv.ParseUint(w.Text, 10, 64)
	if err != nil || n < least || n > most {
		r.bad(w, "out of range", want)
		return 0, false
	}
	return int(n), true
}

func (r *report) duration(w Word) (time.Duration, bool) {
	d, err := time.ParseDuration(w.Text)
	if err != nil || d < 0 || d > maxDelay {
		r.bad(w, "not a time", wantDuration)
		return 0, false
	}
	return d, true
}

// remoteHost reads the host of another node. The host must not be the unspecified or a multicast
// address.
func (r *report) remoteHost(w Word) (string, bool) {
	host, ok := r.host(w)
	if a, err := netip.ParseAddr(host); err == nil && (a.IsUnspecified() || a.IsMulticast()) {
		r.bad(w, "not a unicast address", wantHost)
		return host, false
	}
	return host, ok
}

// Share is a fraction in millionths. It is exact, so Format writes the number that was read.
type Share uint32

const (
	wholeShare     = 1_000_000
	percentShare   = wholeShare / 100
	percentDigits  = 4 // number of decimals in a percentage
	bitsPerKilobit = 1_000
)

// String returns the share in percent, such as "2%" or "0.5%".
func (s Share) String() string {
	text := strconv.Itoa(int(s / percentShare))
	if rest := s % percentShare; rest > 0 {
		digits := strconv.Itoa(int(rest + percentShare))[1:]
		text += "." + strings.TrimRight(digits, "0")
	}
	return text + "%"
}

// share reads a percentage. The percent sign is required, because 0.02 would be ambiguous.
func (r *report) share(w Word) (Share, bool) {
	text, found := strings.CutSuffix(w.Text, "%")
	whole, decimals, _ := strings.Cut(text, ".")
	switch {
	case !found, !isNumber(whole), strings.Contains(text, ".") && !isNumber(decimals):
		r.bad(w, "not a percentage", wantShare)
		return 0, false
	case len(strings.TrimRight(decimals, "0")) > percentDigits:
		r.bad(w, "more precise than 0.0001%", wantShare)
		return 0, false
	}
	decimals = (decimals + "0000")[:percentDigits]
	millionths, err := strconv.ParseUint(whole+decimals, 10, 32)
	if err != nil || millionths > wholeShare {
		r.bad(w, "not a percentage", wantShare)
		return 0, false
	}
	return Share(millionths), true
}

// rateUnits are the units of a rate, largest first.
var rateUnits = []struct {
	name string
	bits int64
}{
	{"gbit", bitsPerKilobit * bitsPerKilobit * bitsPerKilobit},
	{"mbit", bitsPerKilobit * bitsPerKilobit},
	{"kbit", bitsPerKilobit},
	{"bit", 1},
}

func (r *report) rate(w Word) (int64, bool) {
	for _, unit := range rateUnits {
		digits, found := strings.CutSuffix(w.Text, unit.name)
		if !found {
			continue
		}
		n, err := strconv.ParseInt(digits, 10, 64)
		if err != nil || !isNumber(digits) || n == 0 || n > maxRateBits/unit.bits {
			break
		}
		return n * unit.bits, true
	}
	r.bad(w, "not a rate", wantRate)
	return 0, false
}

// formatRate formats a rate in the largest unit that divides it.
func formatRate(bits int64) string {
	for _, unit := range rateUnits {
		if bits%unit.bits == 0 {
			return strconv.FormatInt(bits/unit.bits, 10) + unit.name
		}
	}
	return ""
}
