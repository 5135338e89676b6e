package stack

import (
	"errors"
	"fmt"

	"github.com/tidepool-net/tidepool/internal/tcp"
)

// virError gives an error of TCP the document's name.
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

// The exceptions, in the document's order.
const (
	ErrBoundedSocket         VirError = iota // bound or connected before
	ErrDestinationUnreadable                 // no way leads to the remote address
	ErrErrorTCPState                         // the call needs another state
	ErrInvalidPort                           // not from 1024 to 65535
	ErrInvalidSocket                         // not from 3 to 65535
	ErrPortUsedUp                            // no port is left
	ErrReadBlock                             // shut down for reading
	ErrServerCannotShutdown                  // a server in one direction
	ErrServerHasClose                        // it listened, and was shut down
	ErrServerClosed                          // the connection has ended
	ErrSocketUsedUp                          // no handle is left
	ErrUnboundSocket                         // it has no port
	ErrUninitialSocket                       // no such handle
	ErrUsedPort                              // another socket has the port
	ErrWriteBlock                            // shut down for writing
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

// Error returns the document's name and what it says.
func (e VirError) Error() string {
	if int(e) < len(virExceptions) {
		return virExceptions[e]
	}
	return "stack.VirError"
}

// VirHow is the type of a virShutDown (§5.5).
type VirHow uint8

// The types.
const (
	ShutRead VirHow = iota
	ShutWrite
	ShutBoth
)

// String returns the document's word.
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
