package node

import (
	"cmp"

	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/settings"
)

// Knobs returns the settings. The loop's.
func (n *Node) Knobs() settings.Knobs {
	k := settings.Knobs{
		Knobs: n.stack.TCP().Knobs(), Stack: n.stack.Knobs(), Recorded: n.recorded,
	}
	if r := n.stack.RIP().Speaker(); r != nil {
		k.RIP = r.Timers()
	}
	if n.cfg.LogLevel != nil {
		k.Log = n.cfg.LogLevel.Level()
	}
	return k
}

// SetKnobs changes the settings. The loop's.
func (n *Node) SetKnobs(now clock.Time, k settings.Knobs) error {
	err := cmp.Or(n.stack.TCP().SetKnobs(k.Knobs), n.stack.SetKnobs(k.Stack))
	if r := n.stack.RIP().Speaker(); r != nil && err == nil && k.RIP != r.Timers() {
		err = r.SetTimers(now, k.RIP)
	}
	if err == nil {
		n.setRecorded(k.Recorded)
	}
	if n.cfg.LogLevel != nil && err == nil {
		n.cfg.LogLevel.Set(k.Log)
	}
	return err
}
