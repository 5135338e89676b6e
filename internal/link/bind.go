package link

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"os"
	"strconv"
	"strings"
)

// familyError is the error for an address of an IP version that the socket does not support.
type familyError string

func (network familyError) Error() string {
	return "not an IPv" + string(network[len("ip"):]) + " address"
}

// BindError is a UDP address that cannot be bound.
type BindError struct {
	// Interfaces are the names of the interfaces that need the address.
	Interfaces []string
	// UDP is the address as configured.
	UDP string
	// Err is the system's error.
	Err error
}

// Error names the interface and the address, and suggests the reason.
func (e *BindError) Error() string {
	kind := "interface "
	if len(e.Interfaces) > 1 {
		kind = "interfaces "
	}
	reason := e.Reason()
	if errors.Is(e.Err, errAddrInUse) {
		reason += " (another node running?)"
	}
	return "link: " + kind + strings.Join(e.Interfaces, ", ") + ": bind " + e.UDP + ": " + reason
}

// Reason says why the address cannot be bound.
func (e *BindError) Reason() string {
	switch {
	case errors.Is(e.Err, errAddrInUse):
		return "address already in use"
	case errors.Is(e.Err, errAddrNotAvailable):
		return "not an address of this machine"
	}
	return e.Err.Error()
}

// Advice says what to do.
func (e *BindError) Advice() string {
	const privileged = 1024
	host, port, err := net.SplitHostPort(e.UDP)
	number, _ := strconv.Atoi(port)
	ip, isAddr := parseLiteral(host)
	switch {
	case err != nil:
		return ""
	case errors.Is(e.Err, errAddrInUse):
		if !ip.IsValid() {
			ip = netip.IPv4Unspecified()
		}
		if holder := Holder("udp", netip.AddrPortFrom(ip, uint16(number))); holder != "" {
			return "a free port; " + holder + " uses this one"
		}
		return "a free port; `ss -ulpn sport = :" + port + "` shows who uses this one"
	case errors.Is(e.Err, errAddrNotAvailable):
		return "one of this machine's: " + ownAddresses(ip)
	case errors.Is(e.Err, os.ErrPermission) && number < privileged:
		return "a port from 1024, or CAP_NET_BIND_SERVICE"
	}
	if !isAddr {
		return "an address of this machine, or a name of one"
	}
	return ""
}

// ownAddresses lists some addresses of this machine, of the family of ip.
func ownAddresses(ip netip.Addr) string {
	const most = 6
	var list []string
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		return "127.0.0.1"
	}
	for _, a := range addrs {
		n, ok := a.(*net.IPNet)
		if ok && (n.IP.To4() == nil) == ip.Is6() && !n.IP.IsLinkLocalUnicast() &&
			len(list) < most {
			list = append(list, n.IP.String())
		}
	}
	return strings.Join(list, ", ")
}

// Unwrap returns the system's error.
func (e *BindError) Unwrap() error { return e.Err }

func bindError(cfg Config, err error) error {
	if op, ok := errors.AsType[*net.OpError](err); ok {
		err = op.Err // the outer error would repeat the address
	}
	e := &BindError{UDP: net.JoinHostPort(cfg.Host, strconv.Itoa(int(cfg.Port))), Err: err}
	for _, f := range cfg.Interfaces {
		e.Interfaces = append(e.Interfaces, f.Name)
	}
	return e
}

// bindAddress returns the address to bind. A host name must resolve now, because it names this
// machine.
func bindAddress(cfg Config) (netip.AddrPort, error) {
	ip := netip.IPv4Unspecified()
	if cfg.Host != "" {
		var ok bool
		if ip, ok = parseLiteral(cfg.Host); !ok {
			ctx, cancel := context.WithTimeout(context.Background(), lookupPatience)
			defer cancel()
			var err error
			if ip, err = cfg.Lookup(ctx, "ip", cfg.Host); err != nil {
				return netip.AddrPort{}, bindError(cfg, err)
			}
		}
	}
	return netip.AddrPortFrom(ip.Unmap(), cfg.Port), nil
}
