package node

import (
	"errors"
	"net"
	"net/netip"
	"syscall"

	"github.com/tidepool-net/tidepool/internal/control"
	"github.com/tidepool-net/tidepool/internal/icmp"
	"github.com/tidepool-net/tidepool/internal/rcp"
	"github.com/tidepool-net/tidepool/internal/rdt"
	"github.com/tidepool-net/tidepool/internal/stack"
	"github.com/tidepool-net/tidepool/internal/tcp"
	"github.com/tidepool-net/tidepool/internal/udp"
)

// errClosing is the error of Write after CloseWrite.
var errClosing = NetError(tcp.ErrClosing)

func listenError(network string, on netip.AddrPort, err error) error {
	return &net.OpError{Op: "listen", Net: network, Addr: netAddr(network, on), Err: err}
}

func dialError(network string, from, to netip.AddrPort, err error) error {
	e := &net.OpError{Op: "dial", Net: network, Addr: netAddr(network, to), Err: err}
	if from != (netip.AddrPort{}) {
		e.Source = netAddr(network, from)
	}
	return e
}

// mappedError is an error that also wraps errors of the operating system and of package control.
type mappedError struct {
	error
	also []error
}

func (m *mappedError) Unwrap() []error { return append([]error{m.error}, m.also...) }

func (m *mappedError) Timeout() bool {
	return errors.Is(m.error, tcp.ErrTimeout) || errors.Is(m.error, rcp.ErrTimeout) ||
		errors.Is(m.error, rdt.ErrSilent)
}

func (m *mappedError) Temporary() bool { return false }

// errorTable lists the errors of the operating system and of package control for each error of the
// stack.
var errorTable = []struct {
	err   error
	errno syscall.Errno
	name  error
}{
	{tcp.ErrRefused, syscall.ECONNREFUSED, control.ErrRefused},
	{tcp.ErrReset, syscall.ECONNRESET, control.ErrReset},
	{tcp.ErrTimeout, syscall.ETIMEDOUT, control.ErrTimeout},
	{tcp.ErrUnreachable, syscall.EHOSTUNREACH, control.ErrUnreachable},
	{tcp.ErrNotHost, syscall.ENETUNREACH, control.ErrNoRoute},
	{tcp.ErrPortInUse, syscall.EADDRINUSE, control.ErrPortInUse},
	{tcp.ErrUnspecified, syscall.EADDRNOTAVAIL, control.ErrUsage},
	{tcp.ErrAddress, syscall.EAFNOSUPPORT, control.ErrUsage},
	{tcp.ErrOption, syscall.EINVAL, control.ErrUsage},
	{tcp.ErrCongestion, syscall.EINVAL, control.ErrUsage},
	{tcp.ErrResources, syscall.ENOBUFS, control.ErrUnsupported},
	{tcp.ErrNotExist, syscall.ENOTCONN, control.ErrNotConnected},
	{tcp.ErrClosing, syscall.EPIPE, control.ErrClosed},
	{tcp.ErrAddressGone, syscall.EADDRNOTAVAIL, control.ErrReset},
	{tcp.ErrNoPorts, syscall.EADDRNOTAVAIL, control.ErrNoPorts},
	{stack.ErrNoRoute, syscall.ENETUNREACH, control.ErrNoRoute},
	{stack.ErrPrefix, syscall.EINVAL, control.ErrUsage},
	{stack.ErrNextHop, syscall.ENETUNREACH, control.ErrUsage},
	{stack.ErrRouteExists, syscall.EEXIST, control.ErrRouteExists},
	{stack.ErrNoSuchRoute, syscall.ESRCH, control.ErrNoSuchRoute},
	{stack.ErrNoNeighbor, syscall.EHOSTUNREACH, control.ErrUnreachable},
	{stack.ErrInterfaceDown, syscall.ENETDOWN, control.ErrInterfaceDown},
	{stack.ErrTooBig, syscall.EMSGSIZE, control.ErrTooBig},
	{stack.ErrNotOurs, syscall.EADDRNOTAVAIL, control.ErrUsage},
	{stack.ErrBroadcast, syscall.EACCES, control.ErrUsage},
	{stack.ErrNotGroup, syscall.EINVAL, control.ErrUsage},
	{udp.ErrJoined, syscall.EADDRINUSE, control.ErrUsage},
	{udp.ErrNotMember, syscall.EADDRNOTAVAIL, control.ErrUsage},
	{udp.ErrTooManyGroups, syscall.ENOBUFS, control.ErrUsage},
	{udp.ErrRefused, syscall.ECONNREFUSED, control.ErrRefused},
	{udp.ErrTooBig, syscall.EMSGSIZE, control.ErrTooBig},
	{udp.ErrPortInUse, syscall.EADDRINUSE, control.ErrPortInUse},
	{udp.ErrNoPorts, syscall.EADDRNOTAVAIL, control.ErrNoPorts},
	{udp.ErrAddress, syscall.EINVAL, control.ErrUsage},
	{udp.ErrFamily, syscall.EAFNOSUPPORT, control.ErrUsage},
	{rcp.ErrTimeout, syscall.ETIMEDOUT, control.ErrTimeout},
	{rcp.ErrAddress, syscall.EADDRNOTAVAIL, control.ErrUsage},
	{rcp.ErrConfig, syscall.EINVAL, control.ErrUsage},
	{rdt.ErrSilent, syscall.ETIMEDOUT, control.ErrTimeout},
	{rdt.ErrAbsent, syscall.ENOENT, control.ErrNoSuchObject},
	{rdt.ErrObject, syscall.EINVAL, control.ErrUsage},
	{rdt.ErrConfig, syscall.EINVAL, control.ErrUsage},
	{rdt.ErrTooLarge, syscall.EFBIG, control.ErrTooBig},
	{stack.ErrTooMany, syscall.ENOBUFS, control.ErrUnsupported},
}

// NetError adds the errors of the operating system and of package control that callers test for. It
// omits the addresses in tcp's errors, because the caller's error already has them.
func NetError(err error) error {
	if err == nil {
		return nil
	}
	m := &mappedError{error: err}
	for _, row := range errorTable {
		if !errors.Is(err, row.err) {
			continue
		}
		if errors.Is(row.err, tcp.ErrUnreachable) || errors.Is(row.err, tcp.ErrPortInUse) ||
			errors.Is(row.err, tcp.ErrNotHost) ||
			errors.Is(row.err, tcp.ErrNoPorts) {
			m.error = row.err
		}
		m.also = append(m.also, row.errno, row.name)
		break
	}
	var r icmp.ReportError
	switch {
	case errors.As(err, &r):
		errno := ReportErrno(r.Type.Is6(), r.Type.Number(), r.Code)
		m.also = append(m.also, errno, control.ErrUnreachable)
	case errors.Is(err, tcp.ErrTimeout) && errors.Is(err, tcp.ErrUnreachable):
		m.also = append(m.also, syscall.EHOSTUNREACH, control.ErrUnreachable) // there was no route
	case m.also == nil:
		return err
	}
	return m
}

// unreachableErrnos are the system's errors for the codes of an ICMP destination unreachable. All
// other codes are EHOSTUNREACH.
var unreachableErrnos = []syscall.Errno{
	0: syscall.ENETUNREACH, 1: syscall.EHOSTUNREACH, 2: syscall.ENOPROTOOPT,
	3: syscall.ECONNREFUSED, 4: syscall.EMSGSIZE, 5: syscall.EOPNOTSUPP,
	6: syscall.ENETUNREACH, 7: syscall.EHOSTUNREACH, 8: syscall.ENETUNREACH,
	9: syscall.ENETUNREACH, 10: syscall.EHOSTUNREACH, 11: syscall.ENETUNREACH,
}

// unreachableErrnos6 are the errors for the codes of ICMPv6.
var unreachableErrnos6 = []syscall.Errno{
	0: syscall.ENETUNREACH, 1: syscall.EACCES, 2: syscall.EHOSTUNREACH, 3: syscall.EHOSTUNREACH,
	4: syscall.ECONNREFUSED, 5: syscall.EACCES, 6: syscall.EACCES,
}

// ReportErrno returns the system's error for the type and code of an ICMP or ICMPv6 error message.
func ReportErrno(v6 bool, typ, code uint8) syscall.Errno {
	errnos, unreachable, expired := unreachableErrnos, icmp.TypeUnreachable, icmp.TypeTimeExceeded
	if v6 {
		errnos, unreachable = unreachableErrnos6, icmp.TypeUnreachable6
		expired = icmp.TypeTimeExceeded6
	}
	switch typ {
	case unreachable.Number():
		if int(code) < len(errnos) {
			return errnos[code]
		}
	case expired.Number():
	default:
		if v6 && typ == icmp.TypeTooBig.Number() {
			return syscall.EMSGSIZE
		}
		return syscall.EPROTO
	}
	return syscall.EHOSTUNREACH
}

// Failed returns the error of a connection that has failed, or nil.
func (d *duplex) Failed() error { return d.failed("read") }

func (d *duplex) failed(op string) error {
	if failure := d.failure.Load(); failure != nil {
		return d.opError(op, *failure)
	}
	return nil
}

func (d *duplex) opError(op string, err error) error {
	return &net.OpError{
		Op: op, Net: d.network(), Source: d.LocalAddr(), Addr: d.RemoteAddr(), Err: err,
	}
}
