package link

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"strconv"
	"strings"
)

// errNoIPv4 is a name or address of another kind.
var errNoIPv4 = errors.New("not an IPv4 address")

// BindError is a UDP address that cannot be had.
type BindError struct {
	// Interfaces are the names of those that wanted it.
	Interfaces []string
	// UDP is the address as configured.
	UDP string
	// Err is what the system said.
	Err error
}

// Error names the interface and the address, and guesses at the reason.
func (e *BindError) Error() string {
	kind := "interface "
	if len(e.Interfaces) > 1 {
		kind = "interfaces "
	}
	reason := ""
	switch {
	case errors.Is(e.Err, errAddrInUse):
		reason = "address already in use (another node running?)"
	case errors.Is(e.Err, errAddrNotAvailable):
		reason = "not an address of this machine"
	default:
		reason = e.Err.Error()
	}
	return "link: " + kind + strings.Join(e.Interfaces, ", ") + ": bind " + e.UDP + ": " + reason
}

// Unwrap returns what the system said.
func (e *BindError) Unwrap() error { return e.Err }

func bindError(cfg Config, err error) error {
	if op, ok := errors.AsType[*net.OpError](err); ok {
		err = op.Err // it would name the address once more
	}
	e := &BindError{UDP: net.JoinHostPort(cfg.Host, strconv.Itoa(int(cfg.Port))), Err: err}
	for _, f := range cfg.Interfaces {
		e.Interfaces = append(e.Interfaces, f.Name)
	}
	return e
}

// bindAddress finds the address to bind. A name must resolve here and now, for
// it is our own.
func bindAddress(cfg Config) (netip.AddrPort, error) {
	ip := netip.IPv4Unspecified()
	if cfg.Host != "" {
		var ok bool
		if ip, ok = literal(cfg.Host); !ok {
			ctx, cancel := context.WithTimeout(context.Background(), lookupPatience)
			defer cancel()
			var err error
			if ip, err = cfg.Lookup(ctx, cfg.Host); err != nil {
				return netip.AddrPort{}, bindError(cfg, err)
			}
		}
	}
	if !ip.Unmap().Is4() {
		return netip.AddrPort{}, bindError(cfg, errNoIPv4)
	}
	return netip.AddrPortFrom(ip.Unmap(), cfg.Port), nil
}
