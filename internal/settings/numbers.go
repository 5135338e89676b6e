package settings

import (
	"fmt"
	"strconv"
	"time"

	"github.com/tidepool-net/tidepool/internal/control"
)

// numbers are the settings that are a count or a time. A zero means the default.
var numbers = []Setting{
	count("tcp.initialwindow", "the first congestion window, in segments (RFC 6928)",
		func(k *Knobs) *int { return &k.InitialWindow }),
	count("tcp.fixedwindow", "the window of the algorithm fixed, in bytes; 0: the first window",
		func(k *Knobs) *int { return &k.FixedWindow }),
	period("tcp.rtomin", "the least retransmission time-out (RFC 6298 §2.4)",
		func(k *Knobs) *time.Duration { return &k.RTOMin }),
	period("tcp.rtomax", "the greatest retransmission time-out (RFC 6298 §2.5)",
		func(k *Knobs) *time.Duration { return &k.RTOMax }),
	period("tcp.rtoinitial", "the time-out before the first measurement (RFC 6298 §2.1)",
		func(k *Knobs) *time.Duration { return &k.RTOInitial }),
	period("tcp.delayedack", "how long an acknowledgment waits for company (RFC 9293 §3.8.6.3)",
		func(k *Knobs) *time.Duration { return &k.DelayedAck }),
	{
		key: "tcp.recorder", doc: "the last segments of each connection that are kept, for trace " +
			"to begin with what was before it; 0: none",
		read: func(k *Knobs) string { return strconv.Itoa(k.Recorded) },
		write: func(k *Knobs, v string) error {
			if n, err := strconv.Atoi(v); err != nil || n < 0 || n > MaxRecorded {
				return fmt.Errorf("%w: %q: want 0 to %d segments", control.ErrUsage, v, MaxRecorded)
			}
			return parseCount(v, &k.Recorded)
		},
	},
}

// count is a setting that is a whole number.
func count(key, doc string, field func(*Knobs) *int) Setting {
	return Setting{
		key: key, doc: doc,
		read:  func(k *Knobs) string { return strconv.Itoa(*field(k)) },
		write: func(k *Knobs, v string) error { return parseCount(v, field(k)) },
	}
}

// parseCount reads a whole number.
func parseCount(v string, to *int) error {
	n, err := strconv.Atoi(v)
	if err != nil || n < 0 {
		return fmt.Errorf("%w: %q: want a whole number", control.ErrUsage, v)
	}
	*to = n
	return nil
}

// period is a setting that is a time.
func period(key, doc string, field func(*Knobs) *time.Duration) Setting {
	return Setting{
		key: key, doc: doc,
		read: func(k *Knobs) string { return field(k).String() },
		write: func(k *Knobs, v string) error {
			d, err := time.ParseDuration(v)
			if err != nil || d < 0 {
				return fmt.Errorf("%w: %q: want a time such as 200ms", control.ErrUsage, v)
			}
			*field(k) = d
			return nil
		},
	}
}
