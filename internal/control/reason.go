package control

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
)

// IsHost reports whether an address can be that of a host.
func IsHost(a netip.Addr) bool {
	broadcast := netip.AddrFrom4([4]byte{255, 255, 255, 255})
	return a.Is4() && !a.IsUnspecified() && !a.IsMulticast() && a != broadcast
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

// Reason removes net.OpError's repetition of the request, and converts net.ErrClosed to ErrClosed.
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
