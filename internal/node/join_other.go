//go:build !linux

package node

import (
	"time"

	"github.com/tidepool-net/tidepool/internal/clock"
)

// joints are empty: the loop does not wait for sockets.
type joints struct{}

func (*joints) pending() bool           { return false }
func (*joints) drained()                {}
func (*joints) ready(int) bool          { return false }
func (*joints) event(*Conn, clock.Time) {}

// Joint is not used on this system.
type Joint struct{}

// Join returns false: the loop does not wait for sockets.
func Join(*Conn, int, time.Duration, func(bool, int)) (*Joint, bool) { return nil, false }

// Wait is never called, because Join returns false.
func (*Joint) Wait() (ofFD bool, err error) { return false, nil }
