package control

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
)

// IsHost reports whether an address is that of one host of the network.
func IsHost(a netip.Addr) bool {
	broadcast := netip.AddrFrom4([4]byte{255, 255, 255, 255})
	return a.Is4() && !a.IsUnspecified() && !a.IsMulticast() && a != broadcast
}

// also is an error with other names.
type also struct {
	error
	names []error
}

func (a *also) Unwrap() []error { return append([]error{a.error}, a.names...) }

// Also gives an error other names, by which errors.Is finds it too. Its text stays.
func Also(err error, names ...error) error { return &also{err, names} }

// Misuse is ErrUsage in a text of its own, which says what is wrong and what is wanted.
func Misuse(format string, args ...any) error {
	return Also(fmt.Errorf(format, args...), ErrUsage)
}

// Reason strips what a net.OpError repeats of the request; what is closed is ErrClosed.
func Reason(err error) error {
	if op, ok := errors.AsType[*net.OpError](err); ok {
		err = op.Err
	}
	if errors.Is(err, net.ErrClosed) {
		return ErrClosed
	}
	return err
}

// ReasonOf is Reason, but of what ended with ctx, what ended that.
func ReasonOf(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return Reason(err)
}
