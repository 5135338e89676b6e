package node

import (
	"fmt"

	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/control"
	"github.com/tidepool-net/tidepool/internal/settings"
)

// knobs returns how they stand. The loop's.
func (n *Node) knobs() settings.Knobs {
	k := settings.Knobs{
		Knobs: n.stack.TCP().Knobs(), Stack: n.stack.Knobs(), Recorded: n.recorded,
	}
	if r := n.stack.RIP(); r != nil {
		k.RIP = r.Timers()
	}
	if n.cfg.LogLevel != nil {
		k.Log = n.cfg.LogLevel.Level()
	}
	return k
}

func (n *Node) setKnobs(now clock.Time, k settings.Knobs) error {
	err := firstError(n.stack.TCP().SetKnobs(k.Knobs), n.stack.SetKnobs(k.Stack))
	if r := n.stack.RIP(); r != nil && err == nil && k.RIP != r.Timers() {
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

// show answers the settings whose key begins so. The loop's.
func (n *Node) show(prefix string) ([]control.Setting, error) {
	k := n.knobs()
	return settings.Show(&k, prefix)
}

func (n *Node) set(r control.Set) (answer control.Setting, err error) {
	s, err := settings.Find(r.Key)
	if err != nil {
		return answer, err
	}
	callErr := n.call(func(now clock.Time) {
		k := n.knobs()
		if err = s.Write(&k, r.Value); err != nil {
			return
		}
		if err = n.setKnobs(now, k); err != nil {
			err = fmt.Errorf("%w: %w", control.ErrUsage, err)
			return
		}
		k = n.knobs() // with defaults for zeros
		answer = s.Show(&k)
	})
	if err := firstError(callErr, err); err != nil {
		return answer, fmt.Errorf("set %s: %w", r.Key, ControlError(err))
	}
	return answer, nil
}
