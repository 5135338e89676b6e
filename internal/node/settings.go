package node

import (
	"cmp"
	"log/slog"

	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/rip"
	"github.com/tidepool-net/tidepool/internal/stack"
	"github.com/tidepool-net/tidepool/internal/tcp"
)

// Knobs are the settings that can change while a node runs. Those of TCP apply to new connections.
type Knobs struct {
	tcp.Knobs
	Stack stack.Knobs
	RIP   rip.Timers // timers of RIP and RIPng; zero if RIP is off
	Log   slog.Level
	// Recorded is how many segments a connection's flight recorder keeps, at most MaxRecorded.
	Recorded int
}

// MaxRecorded limits a connection's flight recorder: 64 segments need 22 kB.
const MaxRecorded = 4096

// Knobs returns the settings. Loop only.
func (n *Node) Knobs() Knobs {
	k := Knobs{
		Knobs: n.stack.TCP().Knobs(), Stack: n.stack.Knobs(), Recorded: n.Taps.flights.segments,
	}
	if r := n.stack.RIPs(); len(r) > 0 {
		k.RIP = r[0].Speaker().Timers()
	}
	if n.cfg.LogLevel != nil {
		k.Log = n.cfg.LogLevel.Level()
	}
	return k
}

// SetKnobs changes the settings. Loop only.
func (n *Node) SetKnobs(now clock.Time, k Knobs) error {
	err := cmp.Or(n.stack.TCP().SetKnobs(k.Knobs), n.stack.SetKnobs(k.Stack))
	if r := n.stack.RIPs(); len(r) > 0 && k.RIP != r[0].Speaker().Timers() {
		for i := 0; i < len(r) && err == nil; i++ {
			err = r[i].Speaker().SetTimers(now, k.RIP)
		}
	}
	if err == nil {
		n.Taps.setRecorded(k.Recorded)
	}
	if n.cfg.LogLevel != nil && err == nil {
		n.cfg.LogLevel.Set(k.Log)
	}
	return err
}
