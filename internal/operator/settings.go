package operator

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/control"
	"github.com/tidepool-net/tidepool/internal/node"
	"github.com/tidepool-net/tidepool/internal/stack"
)

// setting is a setting with its name.
type setting struct {
	key, doc string
	values   []string // the valid values, if they are a few keywords
	read     func(k *node.Knobs) string
	// write changes the setting. It returns control.ErrUsage for an invalid value.
	write func(k *node.Knobs, value string) error
}

func findSetting(key string) (setting, error) {
	at := slices.IndexFunc(settings, func(s setting) bool { return s.key == key })
	if at < 0 {
		return setting{}, unknownSetting(key)
	}
	return settings[at], nil
}

func (s setting) show(k *node.Knobs) control.Setting {
	return control.Setting{Key: s.key, Value: s.read(k), Doc: s.doc, Values: s.values}
}

// showSettings returns the settings whose keys start with a prefix.
func showSettings(k *node.Knobs, prefix string) ([]control.Setting, error) {
	list := []control.Setting{}
	for _, s := range settings {
		if strings.HasPrefix(s.key, prefix) {
			list = append(list, s.show(k))
		}
	}
	if len(list) == 0 {
		return nil, unknownSetting(prefix)
	}
	return list, nil
}

func unknownSetting(key string) error {
	var keys []string
	for _, s := range settings {
		keys = append(keys, s.key)
	}
	return fmt.Errorf("setting %q: %w: must be one of %s", key, control.ErrUsage,
		strings.Join(keys, ", "))
}

func handleSettings(h *Requests) {
	look(h, func(_ *stack.Stack, _ clock.Time, r control.Show) ([]control.Setting, error) {
		k := h.node.Knobs()
		k.SetTimes()
		return showSettings(&k, r.Key)
	})
	control.Handle(h.Handlers, func(_ context.Context, r control.Set) (control.Setting, error) {
		return set(h.node, r)
	})
}

func set(n *node.Node, r control.Set) (answer control.Setting, err error) {
	s, err := findSetting(r.Key)
	if err != nil {
		return answer, err
	}
	err = n.Ask(func(_ *stack.Stack, now clock.Time) error {
		k := n.Knobs()
		if err := s.write(&k, r.Value); err != nil {
			return err
		}
		if err := n.SetKnobs(now, k); err != nil {
			return fmt.Errorf("%w: %w", control.ErrUsage, err)
		}
		k = n.Knobs() // the node has replaced zeros with defaults
		k.SetTimes()
		answer = s.show(&k)
		return nil
	})
	if err != nil {
		return answer, fmt.Errorf("set %s: %w", r.Key, err)
	}
	return answer, nil
}
