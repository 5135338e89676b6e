//go:build linux

package interop_test

import (
	"fmt"
	"net"
	"net/netip"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// family is an IP version. The tests and the files of their networks are written with IPv4
// addresses. For IPv6, the address 10.8.0.2 becomes fd0a:8::2, and a /24 becomes a /48.
type family struct{ v6 bool }

func (f family) String() string { return "IPv" + f.digit() }

// digit returns 4 or 6, as in tcp4 and TCP6-LISTEN.
func (f family) digit() string { return pick(f, "4", "6") }

// pick returns one of two values, depending on the family.
func pick[T any](f family, v4, v6 T) T {
	if f.v6 {
		return v6
	}
	return v4
}

// both runs a test over IPv4 and over IPv6.
func both(t *testing.T, test func(t *testing.T, f family)) {
	t.Helper()
	for _, f := range []family{{}, {v6: true}} {
		t.Run(f.String(), func(t *testing.T) { test(t, f) })
	}
}

// ip returns an address in the family.
func (f family) ip(v4 string) string { return f.addr(v4).String() }

func (f family) addr(v4 string) netip.Addr {
	a := netip.MustParseAddr(v4)
	switch b := a.As4(); {
	case !f.v6:
		return a
	case a.IsUnspecified():
		return netip.IPv6Unspecified()
	default:
		return netip.AddrFrom16([16]byte{0: 0xfd, 1: b[0], 3: b[1], 5: b[2], 15: b[3]})
	}
}

func (f family) at(v4 string, port int) netip.AddrPort {
	return netip.AddrPortFrom(f.addr(v4), uint16(port))
}

// colon returns HOST:PORT, with brackets around an IPv6 address.
func (f family) colon(v4 string, port int) string {
	return net.JoinHostPort(f.ip(v4), strconv.Itoa(port))
}

// most returns the length of the longest echo or datagram that fits in a packet of 65535 bytes.
func (f family) most() int { return pick(f, 65507, 65487) }

// host returns C's address in the notation of ss and URLs, which has brackets in IPv6.
func (f family) host() string { return strings.TrimSuffix(f.colon(hostIP, 0), ":0") }

// quad matches the virtual addresses and prefixes of a text.
var quad = regexp.MustCompile(`\b(0|10|20|172|192)\.\d+\.\d+\.\d+(/\d+)?`)

// ripLine matches the lines about RIP that RIPng has in another form or not at all.
var ripLine = regexp.MustCompile(`(?m)^(routing rip2?|rip advertise-to .*)$`)

// text converts the file of a node or the arguments of a command to the family.
func (f family) text(v4 string) string {
	if !f.v6 {
		return v4
	}
	text := quad.ReplaceAllStringFunc(v4, func(s string) string {
		addr, length, isPrefix := strings.Cut(s, "/")
		if !isPrefix {
			return f.ip(addr)
		}
		bits, err := strconv.Atoi(length)
		if err != nil {
			panic(err) // the expression matches only digits
		}
		switch { // each byte except the last is the lower byte of a group
		case bits > 24:
			bits += 96
		case bits%8 == 0:
			bits *= 2
		default:
			bits += 8*(bits/8) + 8
		}
		return fmt.Sprintf("%s/%d", f.ip(addr), bits)
	})
	return ripLine.ReplaceAllStringFunc(text, func(s string) string {
		return map[bool]string{true: "routing ripng"}[strings.HasPrefix(s, "routing")]
	})
}
