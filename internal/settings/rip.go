package settings

import (
	"fmt"
	"time"

	"github.com/tidepool-net/tidepool/internal/control"
	"github.com/tidepool-net/tidepool/internal/rip"
)

// ripTimes are the times of RIP; without RIP they read 0s and cannot be turned.
var ripTimes = []Setting{
	ripTime("rip.periodic", "time between full updates (RFC 2453 §3.8)",
		func(t *rip.Timers) *time.Duration { return &t.Periodic }),
	ripTime("rip.offset", "how far chance moves each of them; 0s: not",
		func(t *rip.Timers) *time.Duration { return &t.PeriodicOffset }),
	ripTime("rip.timeout", "how long a route lives that nobody refreshes (RFC 2453 §3.8)",
		func(t *rip.Timers) *time.Duration { return &t.Timeout }),
	ripTime("rip.garbage", "how long a dead route is still announced (RFC 2453 §3.8)",
		func(t *rip.Timers) *time.Duration { return &t.Garbage }),
	ripTime("rip.triggermin", "the least that news waits behind news (RFC 2453 §3.10.1)",
		func(t *rip.Timers) *time.Duration { return &t.TriggerMin }),
	ripTime("rip.triggermax", "the most that it waits",
		func(t *rip.Timers) *time.Duration { return &t.TriggerMax }),
	ripTime("rip.holddown", "how long a lost prefix is not believed in again; 0s: at once",
		func(t *rip.Timers) *time.Duration { return &t.HoldDown }),
	ripTime("rip.askafter", "how long after a loss neighbours are asked for a way; 0s: never",
		func(t *rip.Timers) *time.Duration { return &t.AskAfter }),
}

// ripTime is a setting of RIP's that is a time; there may be none of it.
func ripTime(key, doc string, field func(*rip.Timers) *time.Duration) Setting {
	return Setting{
		key: key, doc: doc,
		read: func(k *Knobs) string { return max(*field(&k.RIP), 0).String() },
		write: func(k *Knobs, v string) error {
			if k.RIP == (rip.Timers{}) {
				return fmt.Errorf("%w: this node does not speak RIP", control.ErrUsage)
			}
			d, err := time.ParseDuration(v)
			if err != nil || d < 0 {
				return fmt.Errorf("%w: %q: want a time such as 30s", control.ErrUsage, v)
			}
			if d == 0 {
				d = -1
			}
			*field(&k.RIP) = d
			return nil
		},
	}
}
