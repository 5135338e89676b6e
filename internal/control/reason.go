package control

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
)

// IsHost reports whether an address can belong to a host.
func IsHost(a netip.Addr) bool {
	broadcast := netip.AddrFrom4([4]byte{255, 255, 255, 255})
	return a.IsValid() && !a.Is4In6() && !a.IsUnspecified() && !a.IsMulticast() && a != broadcast
}

// Scope returns an address with the zone that packets to it need. links are the interfaces with
// IPv6. If there is only one, it is the default zone of link-local addresses (RFC 4007 §6). The
// error is an ErrUsage and says what the address must be.
func Scope(a netip.Addr, links []string) (netip.Addr, error) {
	scoped := a.Is6() && (a.IsLinkLocalUnicast() || a.IsMulticast())
	possible := make([]string, len(links))
	for i, name := range links {
		possible[i] = a.WithZone(name).String()
	}
	switch {
	case a.Zone() != "" && !scoped:
		return a, Misuse("only link-local addresses have a zone: must be %v", a.WithZone(""))
	case a.Zone() != "" && !slices.Contains(links, a.Zone()):
		return a, Misuse("zone %q is not an interface with IPv6: must be %s", a.Zone(),
			strings.Join(possible, " or "))
	case a.Zone() != "" || !scoped || a.IsMulticast() || len(links) == 0:
		return a, nil
	case len(links) == 1:
		return a.WithZone(links[0]), nil
	}
	return a, Misuse("a link-local address needs the interface: must be %s",
		strings.Join(possible, " or "))
}

// also is an error that also matches other errors.
type also struct {
	error
	names []error
}

func (a *also) Unwrap() []error { return append([]error{a.error}, a.names...) }

// Also returns an error with the same text that also matches names in errors.Is.
func Also(err error, names ...error) error { return &also{err, names} }

// Misuse returns an ErrUsage with another text, which names the wrong value and the expected one.
func Misuse(format string, args ...any) error {
	return Also(fmt.Errorf(format, args...), ErrUsage)
}

// Reason removes the operation and addresses that net.OpError adds, and converts net.ErrClosed to
// ErrClosed.
func Reason(err error) error {
	if op, ok := errors.AsType[*net.OpError](err); ok {
		err = op.Err
	}
	if errors.Is(err, net.ErrClosed) {
		return ErrClosed
	}
	return err
}

// ReasonOf is Reason, but returns the cause of ctx if ctx has ended.
func ReasonOf(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return Reason(err)
}
