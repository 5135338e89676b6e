package tcp

import (
	"errors"

	"github.com/tidepool-net/tidepool/internal/tcp/congestion"
)

// The errors that callers see. The comments give the names that RFC 9293 §3.10 uses, if any.
var (
	ErrRefused = errors.New("connection refused")       // "connection refused"
	ErrReset   = errors.New("connection reset by peer") // "connection reset"
	ErrAborted = errors.New("connection aborted")       // after ABORT
	ErrTimeout = errors.New("connection timed out")     // after R2 of §3.8.3
	// ErrAddressGone ends a connection whose local address the host no longer has.
	ErrAddressGone = errors.New("local address removed")
	ErrUnreachable = errors.New("no route to host")
	ErrNotHost     = errors.New("not a unicast address") // a broadcast or multicast address
	ErrPortInUse   = errors.New("address already in use")
	ErrNoPorts     = errors.New("no free ports")
	ErrClosed      = errors.New("connection closed") // the user has closed that direction
	ErrAddress     = errors.New("addresses must be valid and of one family")
	ErrOption      = errors.New("invalid socket option")
	ErrCongestion  = congestion.ErrUnknown

	// ErrUserTimeout is an ErrTimeout. The RFC calls it "connection aborted due to user timeout".
	ErrUserTimeout error = &kind{"connection aborted due to user timeout", ErrTimeout}
	// ErrExists is an ErrPortInUse. The RFC calls it "connection already exists".
	ErrExists error = &kind{"connection already exists", ErrPortInUse}
	// ErrNotExist is the RFC's "connection does not exist".
	ErrNotExist = errors.New("connection does not exist")
	// ErrClosing is the RFC's "connection closing".
	ErrClosing = errors.New("connection closing")
	// ErrResources is the RFC's "insufficient resources".
	ErrResources = errors.New("insufficient resources")
	// ErrUnspecified is an ErrAddress. The RFC calls it "remote socket unspecified".
	ErrUnspecified error = &kind{"remote socket unspecified", ErrAddress}
)

// kind is an error that is a special case of another.
type kind struct {
	text string
	of   error
}

func (k *kind) Error() string { return k.text }
func (k *kind) Unwrap() error { return k.of }
