// Package settings has what an operator turns by name: how each knob reads, and what may be written
// to it. What a knob does is the stack's; who holds the knobs has them take effect.
package settings

import (
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"github.com/tidepool-net/tidepool/internal/control"
	"github.com/tidepool-net/tidepool/internal/rip"
	"github.com/tidepool-net/tidepool/internal/stack"
	"github.com/tidepool-net/tidepool/internal/tcp"
)

// Knobs are what settings turn. TCP's are for connections opened afterwards.
type Knobs struct {
	tcp.Knobs
	Stack stack.Knobs
	RIP   rip.Timers // all zero: RIP is not spoken
	Log   slog.Level
	// Recorded is how many segments connections keep, up to MaxRecorded.
	Recorded int
}

// MaxRecorded bounds what the flight recorder of a connection may cost: 64 segments are 22 kB.
const MaxRecorded = 4096

// Setting is one knob.
type Setting struct {
	key, doc string
	values   []string // all that it takes, if they are a few words
	read     func(k *Knobs) string
	write    func(k *Knobs, value string) error
}

// Find returns the setting with that key.
func Find(key string) (Setting, error) {
	at := slices.IndexFunc(all, func(s Setting) bool { return s.key == key })
	if at < 0 {
		return Setting{}, unknown(key)
	}
	return all[at], nil
}

// Write turns the knob, unless the value is none of its own: control.ErrUsage.
func (s Setting) Write(k *Knobs, value string) error { return s.write(k, value) }

// Show tells how the knob stands.
func (s Setting) Show(k *Knobs) control.Setting {
	return control.Setting{Key: s.key, Value: s.read(k), Doc: s.doc, Values: s.values}
}

// Show tells of the settings whose key begins so.
func Show(k *Knobs, prefix string) ([]control.Setting, error) {
	list := []control.Setting{}
	for _, s := range all {
		if strings.HasPrefix(s.key, prefix) {
			list = append(list, s.Show(k))
		}
	}
	if len(list) == 0 {
		return nil, unknown(prefix)
	}
	return list, nil
}

func unknown(key string) error {
	var keys []string
	for _, s := range all {
		keys = append(keys, s.key)
	}
	return fmt.Errorf("setting %q: %w: want one of %s", key, control.ErrUsage,
		strings.Join(keys, ", "))
}
