package node

import (
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"

	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/control"
	"github.com/tidepool-net/tidepool/internal/rip"
	"github.com/tidepool-net/tidepool/internal/stack"
	"github.com/tidepool-net/tidepool/internal/tcp"
)

// setting is one knob: how it reads and how it is turned. The loop's.
type setting struct {
	key, doc string
	read     func(k *knobs) string
	write    func(k *knobs, value string) error
}

// knobs are what settings turn. TCP's are for connections opened afterwards.
type knobs struct {
	tcp.Knobs
	stack stack.Knobs
	rip   rip.Timers
	log   slog.Level
	// recorded is how many segments connections keep.
	recorded int
}

// knobs returns how they stand. The loop's.
func (n *Node) knobs() knobs {
	k := knobs{Knobs: n.stack.TCP().Knobs(), stack: n.stack.Knobs(), recorded: n.recorded}
	if r := n.stack.RIP(); r != nil {
		k.rip = r.Timers()
	}
	if n.cfg.LogLevel != nil {
		k.log = n.cfg.LogLevel.Level()
	}
	return k
}

func (n *Node) setKnobs(now clock.Time, k knobs) error {
	err := firstError(n.stack.TCP().SetKnobs(k.Knobs), n.stack.SetKnobs(k.stack))
	if r := n.stack.RIP(); r != nil && err == nil && k.rip != r.Timers() {
		err = r.SetTimers(now, k.rip)
	}
	if err == nil {
		n.setRecorded(k.recorded)
	}
	if n.cfg.LogLevel != nil && err == nil {
		n.cfg.LogLevel.Set(k.log)
	}
	return err
}

// settings are all of them.
var settings = slices.Concat(words, numbers, internet, ripSettings, logSettings)

// logSettings are for a node without a shell.
var logSettings = []setting{{
	key: "log.level", doc: "what a node without a shell logs: debug, info, warn, error",
	read: func(k *knobs) string { return strings.ToLower(k.log.String()) },
	write: func(k *knobs, v string) error {
		if err := k.log.UnmarshalText([]byte(v)); err != nil {
			return fmt.Errorf("%w: %q: want debug, info, warn or error", control.ErrUsage, v)
		}
		return nil
	},
}}

// words are the settings that are a name.
var words = []setting{
	{
		key: "tcp.congestion", doc: "congestion control of new connections: " +
			strings.Join(tcp.Algorithms(), ", "),
		read:  func(k *knobs) string { return k.Congestion },
		write: func(k *knobs, v string) error { k.Congestion = v; return nil },
	},
	{
		key: "tcp.recovery", doc: "loss recovery of new connections: " +
			strings.Join(tcp.Recoveries(), ", "),
		read:  func(k *knobs) string { return k.Recovery },
		write: func(k *knobs, v string) error { k.Recovery = v; return nil },
	},
	{
		key:   "tcp.nagle",
		doc:   "on: small segments wait while data is unacknowledged (RFC 9293 §3.7.4)",
		read:  func(k *knobs) string { return onOff(!k.NoDelay) },
		write: func(k *knobs, v string) error { return parseOff(v, &k.NoDelay) },
	},
	{
		key:   "tcp.pacing",
		doc:   "on: new connections spread their window over the round trip",
		read:  func(k *knobs) string { return onOff(k.Pacing) },
		write: func(k *knobs, v string) error { return parseOn(v, &k.Pacing) },
	},
	{
		key: "tcp.mtuprobing",
		doc: "find a path's MTU by probes (RFC 4821): off, blackhole when full segments " +
			"vanish, or on from the start",
		read:  func(k *knobs) string { return k.MTUProbing },
		write: func(k *knobs, v string) error { k.MTUProbing = v; return nil },
	},
	{
		key: "tcp.options", doc: "off: new connections send plain headers, as old nodes need them",
		read:  func(k *knobs) string { return onOff(!k.OptionsOff) },
		write: func(k *knobs, v string) error { return parseOff(v, &k.OptionsOff) },
	},
	{
		key: "tcp.timestamps", doc: "on: offer and accept timestamps (RFC 7323 §3)",
		read:  func(k *knobs) string { return onOff(!k.NoTimestamps) },
		write: func(k *knobs, v string) error { return parseOff(v, &k.NoTimestamps) },
	},
	{
		key: "tcp.sack", doc: "on: offer and accept selective acknowledgments (RFC 2018)",
		read:  func(k *knobs) string { return onOff(!k.NoSACK) },
		write: func(k *knobs, v string) error { return parseOff(v, &k.NoSACK) },
	},
	{
		key: "tcp.ecn", doc: "explicit congestion notification (RFC 3168): on asks for it, " +
			"passive agrees when asked, off does neither",
		read: func(k *knobs) string { return k.ECN.String() },
		write: func(k *knobs, v string) error {
			mode, ok := tcp.ParseECNMode(v)
			if !ok {
				return fmt.Errorf("%w: %q: want on, passive or off", control.ErrUsage, v)
			}
			k.ECN = mode
			return nil
		},
	},
	{
		key: "tcp.syncookies", doc: "SYNs answered without keeping them (RFC 4987 §3.6): auto " +
			"when a listener's SYN queue is full, always, off",
		read: func(k *knobs) string { return k.SynCookies.String() },
		write: func(k *knobs, v string) error {
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
		read:  func(k *knobs) string { return onOff(!k.NoWindowScale) },
		write: func(k *knobs, v string) error { return parseOff(v, &k.NoWindowScale) },
	},
}

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

// show answers the settings whose key begins so. The loop's.
func (n *Node) show(prefix string) ([]control.Setting, error) {
	k := n.knobs()
	list := []control.Setting{}
	for _, s := range settings {
		if strings.HasPrefix(s.key, prefix) {
			list = append(list, control.Setting{Key: s.key, Value: s.read(&k), Doc: s.doc})
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
	return fmt.Errorf("setting %q: %w: want one of %s", key, control.ErrUsage,
		strings.Join(keys, ", "))
}

func (n *Node) set(r control.Set) (answer control.Setting, err error) {
	at := slices.IndexFunc(settings, func(s setting) bool { return s.key == r.Key })
	if at < 0 {
		return answer, unknownSetting(r.Key)
	}
	s := settings[at]
	callErr := n.call(func(now clock.Time) {
		k := n.knobs()
		if err = s.write(&k, r.Value); err != nil {
			return
		}
		if err = n.setKnobs(now, k); err != nil {
			err = fmt.Errorf("%w: %w", control.ErrUsage, err)
			return
		}
		k = n.knobs() // with defaults for zeros
		answer = control.Setting{Key: s.key, Value: s.read(&k), Doc: s.doc}
	})
	if err := firstError(callErr, err); err != nil {
		return answer, fmt.Errorf("set %s: %w", r.Key, controlError(err))
	}
	return answer, nil
}

// sampleHeader names the columns of a probe file, after ss -ti's fields.
const sampleHeader = "seconds,sid,state,cwnd,ssthresh,rtt_ms,rttvar_ms,rto_ms,minrtt_ms," +
	"in_flight,acked,sent,retrans,rtos,tlps,limited\n"

// appendSample appends one row of a probe file.
func appendSample(row []byte, sid int, p *tcp.Sample) []byte {
	ms := func(d int64) { row = strconv.AppendFloat(row, float64(d)/1e6, 'f', 4, 64) }
	num := func(v uint64) { row = strconv.AppendUint(row, v, 10) }
	comma := func() { row = append(row, ',') }
	row = strconv.AppendFloat(row, float64(p.Time)/1e9, 'f', 6, 64)
	comma()
	row = strconv.AppendInt(row, int64(sid), 10)
	comma()
	row = append(row, p.State.String()...)
	comma()
	num(uint64(p.Cwnd))
	comma()
	num(uint64(p.Ssthresh))
	for _, d := range []int64{int64(p.SRTT), int64(p.RTTVar), int64(p.RTO), int64(p.MinRTT)} {
		comma()
		ms(d)
	}
	for _, v := range []uint64{
		uint64(p.Pipe), p.Una, p.Nxt, p.Retransmits, p.Timeouts, p.TailProbes,
	} {
		comma()
		num(v)
	}
	comma()
	row = append(row, p.Limited.String()...)
	return append(row, '\n')
}
