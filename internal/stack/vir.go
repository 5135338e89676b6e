package stack

import (
	"errors"
	"fmt"
	"io"
	"net/netip"

	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/tcp"
)

// Vir has the socket calls of founding document 004 §5.5. A handle is the smallest free number from
// 3 on. No call blocks: it returns ErrWouldBlock instead. Only the stack's owner may use Vir.
type Vir struct {
	stack   *Stack
	handles map[int]*virSocket
	ports   map[uint16]int // number of handles with each port
	free    int            // no smaller handle is free
}

// virSocket is the state of a handle.
type virSocket struct {
	port            uint16 // bound port; zero: not bound
	listener        *tcp.Listener
	conn            *tcp.Conn
	served          bool // the socket was a listener
	connected       bool // VirConnect or VirAccept has succeeded
	noRead, noWrite bool
}

// VirSocketEnd is the Owner of Vir's connections.
type VirSocketEnd struct{}

// These are the limits of document 004 §7.
const (
	virFirst     = 3
	virLast      = 65535
	virLeastPort = 1024
	virBacklog   = 65535
)

// ErrWouldBlock means that the call must be repeated after an event.
var ErrWouldBlock = errors.New("the call would block")

// NewVir returns the calls of a stack.
func NewVir(s *Stack) *Vir {
	return &Vir{stack: s, handles: map[int]*virSocket{}, ports: map[uint16]int{}, free: virFirst}
}

// VirSocket is the document's virSocket. It returns a new handle.
func (v *Vir) VirSocket() (int, error) {
	for h := v.free; h <= virLast; h++ {
		if v.handles[h] == nil {
			v.handles[h] = &virSocket{}
			v.free = h + 1
			return h, nil
		}
	}
	return 0, ErrSocketUsedUp
}

func (v *Vir) find(h int) (*virSocket, error) {
	if h < virFirst || h > virLast {
		return nil, fmt.Errorf("socket %d: %w", h, ErrInvalidSocket)
	}
	k := v.handles[h]
	if k == nil {
		return nil, fmt.Errorf("socket %d: %w", h, ErrUninitialSocket)
	}
	return k, nil
}

// VirBind is the document's virBind. It gives the socket a port.
func (v *Vir) VirBind(h, port int) error {
	k, err := v.find(h)
	switch {
	case err != nil:
		return err
	case port < virLeastPort || port > virLast:
		return fmt.Errorf("port %d: %w", port, ErrInvalidPort)
	case k.port != 0 || k.conn != nil:
		return fmt.Errorf("socket %d: %w", h, ErrBoundedSocket)
	case v.taken(uint16(port)):
		return fmt.Errorf("port %d: %w", port, ErrUsedPort)
	}
	v.give(k, uint16(port))
	return nil
}

// taken reports whether a port is bound or has a listener.
func (v *Vir) taken(port uint16) bool {
	return v.ports[port] > 0 || v.stack.tcp.Listens(netip.AddrPortFrom(netip.Addr{}, port))
}

// give changes the port of a socket.
func (v *Vir) give(k *virSocket, port uint16) {
	if v.ports[k.port]--; v.ports[k.port] <= 0 {
		delete(v.ports, k.port)
	}
	if k.port = port; port != 0 {
		v.ports[port]++
	}
}

// VirListen is the document's virListen. It makes the socket accept connections.
func (v *Vir) VirListen(h int) error {
	k, err := v.find(h)
	switch {
	case err != nil:
		return err
	case k.served:
		return fmt.Errorf("socket %d: %w", h, ErrServerHasClose)
	case k.listener != nil || k.conn != nil:
		return fmt.Errorf("socket %d: %w", h, ErrErrorTCPState)
	case k.port == 0:
		return fmt.Errorf("socket %d: %w", h, ErrUnboundSocket)
	}
	on := netip.AddrPortFrom(netip.IPv4Unspecified(), k.port)
	k.listener, err = v.stack.tcp.Listen(on, virBacklog)
	return virError(err)
}

// VirConnect is the document's virConnect. It returns ErrWouldBlock until the connection is
// established, and must then be called again.
func (v *Vir) VirConnect(now clock.Time, h int, to netip.AddrPort) error {
	k, err := v.find(h)
	switch {
	case err != nil:
		return err
	case k.listener != nil || k.served:
		return fmt.Errorf("socket %d is listening: %w", h, ErrErrorTCPState)
	case k.connected || k.conn != nil && k.conn.Tuple().Remote() != to:
		return fmt.Errorf("socket %d is connected: %w", h, ErrErrorTCPState)
	case k.conn == nil:
		if k.conn, err = v.stack.tcp.Connect(now, to, k.port); err != nil {
			return virError(err)
		}
		k.conn.Owner = VirSocketEnd{}
		v.give(k, k.conn.Tuple().LocalPort)
	}
	switch k.conn.State() {
	case tcp.StateSynSent, tcp.StateSynReceived:
		return ErrWouldBlock
	case tcp.StateClosed:
		return virError(k.conn.Err())
	default:
		k.connected = true
		return nil
	}
}

// VirAccept is the document's virAccept. It returns the handle of the next connection.
func (v *Vir) VirAccept(h int) (int, error) {
	k, err := v.find(h)
	switch {
	case err != nil:
		return 0, err
	case k.served:
		return 0, fmt.Errorf("socket %d: %w", h, ErrServerHasClose)
	case k.listener == nil:
		return 0, fmt.Errorf("socket %d is not listening: %w", h, ErrErrorTCPState)
	case k.listener.Queued() == 0:
		return 0, ErrWouldBlock
	}
	accepted, err := v.VirSocket()
	if err != nil {
		return 0, err
	}
	c, _ := k.listener.Accept()
	c.Owner = VirSocketEnd{}
	v.handles[accepted].conn, v.handles[accepted].connected = c, true
	return accepted, nil
}

// connected returns the socket of a handle, which must be connected.
func (v *Vir) connected(h int) (*virSocket, error) {
	k, err := v.find(h)
	switch {
	case err != nil:
		return nil, err
	case k.served:
		return nil, fmt.Errorf("socket %d: %w", h, ErrServerHasClose)
	case k.listener != nil:
		return nil, fmt.Errorf("socket %d is listening: %w", h, ErrErrorTCPState)
	case k.conn == nil && k.port == 0:
		return nil, fmt.Errorf("socket %d: %w", h, ErrUnboundSocket)
	case k.conn == nil:
		return nil, fmt.Errorf("socket %d is not connected: %w", h, ErrErrorTCPState)
	}
	return k, nil
}

// VirRead is the document's virRead. It returns io.EOF after the peer's last byte.
func (v *Vir) VirRead(now clock.Time, h int, p []byte) (int, error) {
	k, err := v.connected(h)
	switch {
	case err != nil:
		return 0, err
	case k.noRead:
		return 0, fmt.Errorf("socket %d: %w", h, ErrReadBlock)
	}
	n, err := k.conn.Receive(now, p)
	switch {
	case n > 0:
		return n, nil
	case errors.Is(err, tcp.ErrClosing), k.conn.ReadDone():
		return 0, io.EOF
	case err != nil:
		return 0, fmt.Errorf("socket %d: %w: %w", h, ErrServerClosed, err)
	}
	return 0, ErrWouldBlock
}

// VirWrite is the document's virWrite. It copies as much as fits in the send buffer.
func (v *Vir) VirWrite(now clock.Time, h int, p []byte) (int, error) {
	k, err := v.connected(h)
	switch {
	case err != nil:
		return 0, err
	case k.noWrite:
		return 0, fmt.Errorf("socket %d: %w", h, ErrWriteBlock)
	}
	n, err := k.conn.Send(now, p)
	if err != nil {
		return 0, fmt.Errorf("socket %d: %w: %w", h, ErrServerClosed, err)
	}
	if n == 0 && len(p) > 0 {
		return 0, ErrWouldBlock
	}
	return n, nil
}

// VirShutDown is the document's virShutDown. It closes reading, writing or both, and keeps the
// handle. A listener can only be closed for both.
func (v *Vir) VirShutDown(now clock.Time, h int, how VirHow) error {
	k, err := v.find(h)
	if err != nil {
		return err
	}
	if k.listener != nil {
		if how != ShutBoth {
			return fmt.Errorf("socket %d: %w", h, ErrServerCannotShutdown)
		}
		k.listener.Close(now)
		k.listener, k.served = nil, true
		return nil
	}
	if k, err = v.connected(h); err != nil {
		return err
	}
	if how != ShutWrite {
		if k.noRead {
			return fmt.Errorf("socket %d: %w", h, ErrReadBlock)
		}
		k.noRead = true
		k.conn.CloseRead(now)
	}
	if how != ShutRead {
		if k.noWrite {
			return fmt.Errorf("socket %d: %w", h, ErrWriteBlock)
		}
		k.noWrite = true
		_ = k.conn.CloseWrite(now)
	}
	return nil
}

// VirClose is the document's virClose. It delivers written data and a FIN. It frees the handle at
// once.
func (v *Vir) VirClose(now clock.Time, h int) error {
	k, err := v.find(h)
	if err != nil {
		return err
	}
	if k.listener != nil {
		k.listener.Close(now)
	}
	if k.conn != nil {
		k.conn.Close(now)
	}
	v.give(k, 0)
	delete(v.handles, h)
	v.free = min(v.free, h)
	return nil
}

// virError translates an error of TCP into the document's exception.
func virError(err error) error {
	for _, row := range []struct {
		of   error
		name VirError
	}{
		{tcp.ErrUnreachable, ErrDestinationUnreadable},
		{tcp.ErrTimeout, ErrDestinationUnreadable},
		{tcp.ErrAddress, ErrDestinationUnreadable},
		{tcp.ErrNoPorts, ErrPortUsedUp},
		{tcp.ErrPortInUse, ErrUsedPort},
	} {
		if errors.Is(err, row.of) {
			return fmt.Errorf("%w: %w", row.name, err)
		}
	}
	if err != nil {
		return fmt.Errorf("%w: %w", ErrServerClosed, err)
	}
	return nil
}

// VirError is one of the fifteen exceptions of founding document 004 §5.6.
type VirError uint8

// These are the exceptions, in the document's order.
const (
	ErrBoundedSocket         VirError = iota // the socket is already bound or connected
	ErrDestinationUnreadable                 // there is no route to the remote address
	ErrErrorTCPState                         // the call is not possible in this state
	ErrInvalidPort                           // the port is not from 1024 to 65535
	ErrInvalidSocket                         // the handle is not from 3 to 65535
	ErrPortUsedUp                            // there is no free port
	ErrReadBlock                             // the socket was shut down for reading
	ErrServerCannotShutdown                  // a listener cannot be shut down in one direction
	ErrServerHasClose                        // the listener was shut down
	ErrServerClosed                          // the connection has ended
	ErrSocketUsedUp                          // there is no free handle
	ErrUnboundSocket                         // the socket has no port
	ErrUninitialSocket                       // there is no such handle
	ErrUsedPort                              // another socket uses the port
	ErrWriteBlock                            // the socket was shut down for writing
)

var virExceptions = [...]string{
	"BoundedSocketException: the socket has been used",
	"DestinationUnreadable: the remote ip is unreachable",
	"ErrorTCPStateException: another state is expected",
	"InvalidPortException: port is not valid, range is 1024 to 65535",
	"InvalidSocketException: the socket is from 3 to 65535",
	"PortUsedUpException: the ports from 1024 to 65535 have been used",
	"ReadblockException: reading has been closed by shutdown",
	"ServerCannotShutdownException: a server can only be shut down by both",
	"ServerHasCloseException: the server has closed",
	"ServerClosedException: the socket has been closed",
	"SocketUsedUpException: the sockets from 3 to 65535 have been used",
	"UnboundSocketException: the socket has not been bound",
	"UninitialSocketException: the socket has not been initiated",
	"UsedPortException: the port has been used",
	"WriteBlockException: writing has been closed",
}

// Error returns the document's name and text.
func (e VirError) Error() string {
	if int(e) < len(virExceptions) {
		return virExceptions[e]
	}
	return "stack.VirError"
}

// VirHow is the type of a virShutDown (document 004 §5.5).
type VirHow uint8

// These are the types.
const (
	ShutRead VirHow = iota
	ShutWrite
	ShutBoth
)

// String returns the document's name.
func (h VirHow) String() string {
	switch h {
	case ShutRead:
		return "SHUT_RD"
	case ShutWrite:
		return "SHUT_WR"
	case ShutBoth:
		return "SHUT_RDWR"
	}
	return "?"
}
