package settings

import (
	"fmt"
	"strings"

	"github.com/tidepool-net/tidepool/internal/control"
	"github.com/tidepool-net/tidepool/internal/tcp"
)

// words are the settings that are a name.
var words = []Setting{
	{
		key: "tcp.congestion", doc: "congestion control of new connections: " +
			strings.Join(tcp.Algorithms(), ", "),
		values: tcp.Algorithms(),
		read:   func(k *Knobs) string { return k.Congestion },
		write:  func(k *Knobs, v string) error { k.Congestion = v; return nil },
	},
	{
		key: "tcp.recovery", doc: "loss recovery of new connections: " +
			strings.Join(tcp.Recoveries(), ", "),
		values: tcp.Recoveries(),
		read:   func(k *Knobs) string { return k.Recovery },
		write:  func(k *Knobs, v string) error { k.Recovery = v; return nil },
	},
	{
		key:    "tcp.nagle",
		doc:    "on: small segments wait while data is unacknowledged (RFC 9293 §3.7.4)",
		read:   func(k *Knobs) string { return onOff(!k.NoDelay) },
		values: onOffWords,
		write:  func(k *Knobs, v string) error { return parseOff(v, &k.NoDelay) },
	},
	{
		key:    "tcp.pacing",
		doc:    "on: new connections spread their window over the round trip",
		read:   func(k *Knobs) string { return onOff(k.Pacing) },
		values: onOffWords,
		write:  func(k *Knobs, v string) error { return parseOn(v, &k.Pacing) },
	},
	{
		key: "tcp.mtuprobing",
		doc: "find a path's MTU by probes (RFC 4821): off, blackhole when full segments " +
			"vanish, or on from the start",
		values: []string{"blackhole", "off", "on"},
		read:   func(k *Knobs) string { return k.MTUProbing },
		write:  func(k *Knobs, v string) error { k.MTUProbing = v; return nil },
	},
	{
		key: "tcp.options", doc: "off: new connections send plain headers, as old nodes need them",
		read:   func(k *Knobs) string { return onOff(!k.OptionsOff) },
		values: onOffWords,
		write:  func(k *Knobs, v string) error { return parseOff(v, &k.OptionsOff) },
	},
	{
		key:   "tcp.rst",
		doc:   "off: send no resets, which some old nodes do not survive",
		read:  func(k *Knobs) string { return onOff(!k.NoResets) },
		write: func(k *Knobs, v string) error { return parseOff(v, &k.NoResets) },
	},
	{
		key: "tcp.timestamps", doc: "on: offer and accept timestamps (RFC 7323 §3)",
		read:   func(k *Knobs) string { return onOff(!k.NoTimestamps) },
		values: onOffWords,
		write:  func(k *Knobs, v string) error { return parseOff(v, &k.NoTimestamps) },
	},
	{
		key: "tcp.sack", doc: "on: offer and accept selective acknowledgments (RFC 2018)",
		read:   func(k *Knobs) string { return onOff(!k.NoSACK) },
		values: onOffWords,
		write:  func(k *Knobs, v string) error { return parseOff(v, &k.NoSACK) },
	},
	{
		key: "tcp.ecn", doc: "explicit congestion notification (RFC 3168): on asks for it, " +
			"passive agrees when asked, off does neither; dctcp asks, and reports marks as RFC " +
			"8257 has it, which both ends must do",
		values: []string{"dctcp", "off", "on", "passive"},
		read:   func(k *Knobs) string { return k.ECN.String() },
		write: func(k *Knobs, v string) error {
			mode, ok := tcp.ParseECNMode(v)
			if !ok {
				return fmt.Errorf("%w: %q: want on, passive, off or dctcp", control.ErrUsage, v)
			}
			k.ECN = mode
			return nil
		},
	},
	{
		key: "tcp.syncookies", doc: "SYNs answered without keeping them (RFC 4987 §3.6): auto " +
			"when a listener's SYN queue is full, always, off",
		values: []string{"always", "auto", "off"},
		read:   func(k *Knobs) string { return k.SynCookies.String() },
		write: func(k *Knobs, v string) error {
			mode, ok := tcp.ParseCookieMode(v)
			if !ok {
				return fmt.Errorf("%w: %q: want auto, always or off", control.ErrUsage, v)
			}
			k.SynCookies = mode
			return nil
		},
	},
	{
		key: "tcp.windowscale", doc: "on: offer and accept scaled windows (RFC 7323 §2)",
		read:   func(k *Knobs) string { return onOff(!k.NoWindowScale) },
		values: onOffWords,
		write:  func(k *Knobs, v string) error { return parseOff(v, &k.NoWindowScale) },
	},
}

// log are for a node without a shell.
var log = []Setting{{
	key: "log.level", doc: "what a node without a shell logs: debug, info, warn, error",
	values: []string{"debug", "error", "info", "warn"},
	read:   func(k *Knobs) string { return strings.ToLower(k.Log.String()) },
	write: func(k *Knobs, v string) error {
		if err := k.Log.UnmarshalText([]byte(v)); err != nil {
			return fmt.Errorf("%w: %q: want debug, info, warn or error", control.ErrUsage, v)
		}
		return nil
	},
}}

func onOff(on bool) string {
	if on {
		return "on"
	}
	return "off"
}

// parseOff reads on or off into a field that means off.
func parseOff(v string, off *bool) error {
	switch v {
	case "on":
		*off = false
	case "off":
		*off = true
	default:
		return fmt.Errorf("%w: %q: want on or off", control.ErrUsage, v)
	}
	return nil
}

// parseOn reads on or off into a field that means on.
func parseOn(v string, on *bool) error {
	var off bool
	err := parseOff(v, &off)
	if err == nil {
		*on = !off
	}
	return err
}
