package requests

import (
	"context"
	"fmt"

	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/control"
	"github.com/tidepool-net/tidepool/internal/node"
	"github.com/tidepool-net/tidepool/internal/settings"
	"github.com/tidepool-net/tidepool/internal/stack"
)

func handleSettings(h *Host) {
	look(h, func(_ *stack.Stack, _ clock.Time, r control.Show) ([]control.Setting, error) {
		k := h.node.Knobs()
		return settings.Show(&k, r.Key)
	})
	control.Handle(h.Handlers, func(_ context.Context, r control.Set) (control.Setting, error) {
		return set(h.node, r)
	})
}

// set changes one setting.
func set(n *node.Node, r control.Set) (answer control.Setting, err error) {
	s, err := settings.Find(r.Key)
	if err != nil {
		return answer, err
	}
	err = n.Ask(func(_ *stack.Stack, now clock.Time) error {
		k := n.Knobs()
		if err := s.Write(&k, r.Value); err != nil {
			return err
		}
		if err := n.SetKnobs(now, k); err != nil {
			return fmt.Errorf("%w: %w", control.ErrUsage, err)
		}
		k = n.Knobs() // with defaults for zeros
		answer = s.Show(&k)
		return nil
	})
	if err != nil {
		return answer, fmt.Errorf("set %s: %w", r.Key, err)
	}
	return answer, nil
}
