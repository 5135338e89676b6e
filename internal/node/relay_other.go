//go:build !linux

package node

import (
	"time"

	"github.com/tidepool-net/tidepool/internal/clock"
)

// relays are empty: the loop does not wait for sockets.
type relays struct{}

func (*relays) pending() bool           { return false }
func (*relays) drained()                {}
func (*relays) ready(int) bool          { return false }
func (*relays) event(*Conn, clock.Time) {}

// Relay is not used on this system.
type Relay struct{}

// StartRelay returns false: the loop does not wait for sockets.
func StartRelay(*Conn, int, time.Duration, func(bool, int)) (*Relay, bool) { return nil, false }

// Wait is never called, because StartRelay returns false.
func (*Relay) Wait() (ofFD bool, err error) { return false, nil }
