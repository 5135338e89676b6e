package rip_test

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/rip"
)

// bench2 drives a RIPv2 Speaker with text as input and output. The Speaker has the address 10.0.0.1
// on interface 0, with the neighbor b, and 10.0.1.1 on interface 1, with the neighbors c and d.
type bench2 struct {
	*rip.Speaker
	tb  testing.TB
	now clock.Time
}

// plain2 returns a configuration of two interfaces, which a test may change.
func plain2() rip.Config {
	return rip.Config{
		Dialect: rip.RIPv2,
		Interfaces: []rip.Interface{
			{Addr: netip.MustParsePrefix("10.0.0.1/24")},
			{Addr: netip.MustParsePrefix("10.0.1.1/24")},
		},
		Rand: rand.New(rand.NewPCG(1, 2)),
	}
}

// undelayed returns a configuration without a delay of triggered updates or a random period.
func undelayed() rip.Config {
	cfg := plain2()
	cfg.TriggerMin, cfg.TriggerMax, cfg.PeriodicOffset = -1, -1, -1
	return cfg
}

func newBench2(tb testing.TB, cfg rip.Config) *bench2 {
	tb.Helper()
	x := newStopped2(tb, cfg)
	x.Start(x.now)
	x.sent()
	return x
}

func newStopped2(tb testing.TB, cfg rip.Config) *bench2 {
	tb.Helper()
	s, err := rip.NewSpeaker(cfg)
	require.NoError(tb, err)
	x := &bench2{Speaker: s, tb: tb, now: 1}
	for i, f := range cfg.Interfaces {
		x.SetLocal(x.now, f.Addr.Masked(), i, true)
	}
	return x
}

// hear delivers a response from port 520, which the Speaker must accept. The entries are in the
// form of entries2.
func (x *bench2) hear(from netip.Addr, entries string) {
	x.tb.Helper()
	require.Equal(x.tb, rip.Accepted, x.say(from, rip.Port, message2(x.tb, rip.Response, 2,
		entries)))
}

// say delivers a message to the Speaker and returns the result.
func (x *bench2) say(from netip.Addr, port uint16, b []byte) rip.Refusal {
	return x.Input(x.now, netip.AddrPortFrom(from, port), ifaceOf(from), b)
}

func message2(tb testing.TB, c rip.Command, version uint8, entries string) []byte {
	tb.Helper()
	return rip.Packet2{Command: c, Version: version, Entries: entries2(tb, entries)}.Append(nil)
}

// entries2 parses "PREFIX=METRIC" entries, each with an optional "#TAG" and "@NEXTHOP". "*" is the
// entry that requests the whole table.
func entries2(tb testing.TB, text string) (list []rip.Entry2) {
	tb.Helper()
	for f := range strings.FieldsSeq(text) {
		if f == "*" {
			list = append(list, rip.Entry2{Metric: rip.Infinity})
			continue
		}
		e := rip.Entry2{Family: 2}
		f, hop, found := strings.Cut(f, "@")
		if found {
			e.NextHop = word2(netip.MustParseAddr(hop))
		}
		f, tag, found := strings.Cut(f, "#")
		if found {
			_, err := fmt.Sscan(tag, &e.Tag)
			require.NoError(tb, err)
		}
		prefix, metric, found := strings.Cut(f, "=")
		require.True(tb, found, f)
		_, err := fmt.Sscan(metric, &e.Metric)
		require.NoError(tb, err)
		p := netip.MustParsePrefix(prefix)
		e.Addr, e.Mask = word2(p.Addr()), ^uint32(0)<<(32-p.Bits())
		list = append(list, e)
	}
	return list
}

func word2(a netip.Addr) uint32 {
	b := a.As4()
	return uint32(b[0])<<24 | uint32(b[1])<<16 | uint32(b[2])<<8 | uint32(b[3])
}

func addr2(a uint32) netip.Addr {
	return netip.AddrFrom4([4]byte{byte(a >> 24), byte(a >> 16), byte(a >> 8), byte(a)})
}

// sent drains Output and returns one line for each message: the destination and interface, "?" for
// a request, "v1" for version 1, and the entries. For authenticated messages use fetch.
func (x *bench2) sent() (lines []string) {
	x.tb.Helper()
	for _, m := range x.fetch() {
		line := fmt.Sprintf("%v:%d/%d", m.To, m.Port, m.Iface)
		line = strings.Replace(line, "224.0.0.9:520", "all", 1)
		if m.Payload[4] == 0xff {
			lines = append(lines, line+" signed")
			continue
		}
		p, r := rip.ParsePacket2(m.Payload, nil)
		require.Equal(x.tb, rip.Accepted, r)
		if p.Version == 1 {
			line += " v1"
		}
		if p.Command == rip.Request {
			line += " ?"
		}
		lines = append(lines, line+text2(p.Entries))
	}
	return lines
}

func text2(entries []rip.Entry2) (line string) {
	for _, e := range entries {
		if e.Family == 0 {
			line += " *"
			continue
		}
		line += " " + addr2(e.Addr).String()
		if e.Mask != 0 {
			line += fmt.Sprintf("/%d", 32-trailing(e.Mask))
		}
		line += fmt.Sprintf("=%d", e.Metric)
		if e.Tag != 0 {
			line += fmt.Sprintf("#%d", e.Tag)
		}
		if e.NextHop != 0 {
			line += "@" + addr2(e.NextHop).String()
		}
	}
	return line
}

func trailing(mask uint32) (n int) {
	for ; mask&1 == 0 && n < 32; mask >>= 1 {
		n++
	}
	return n
}

// fetch drains Output and returns the messages.
func (x *bench2) fetch() (list []rip.Message) {
	x.tb.Helper()
	var m rip.Message
	for x.Output(x.now, &m) {
		m.Payload = append([]byte(nil), m.Payload...)
		list = append(list, m)
		require.Less(x.tb, len(list), 10_000, "the Speaker sends messages forever")
	}
	return list
}

// learned drains NextChange. Its lines are "PREFIX via ADDR cost N" or "PREFIX gone".
func (x *bench2) learned() (lines []string) {
	for ch, ok := x.NextChange(); ok; ch, ok = x.NextChange() {
		if ch.Gone {
			lines = append(lines, fmt.Sprintf("%v gone", ch.Prefix))
			continue
		}
		lines = append(lines, fmt.Sprintf("%v via %v cost %d", ch.Prefix, ch.NextHop, ch.Cost))
	}
	return lines
}

// wait advances the time as a driver does. It returns the messages sent in the meantime, with their
// times.
func (x *bench2) wait(d time.Duration) (lines []string) {
	x.tb.Helper()
	until := x.now.Add(d)
	for t := x.Deadline(); t != clock.Never && t <= until; t = x.Deadline() {
		x.now = t
		x.Advance(t)
		require.False(x.tb, x.Deadline().Due(t), "Advance leaves nothing that is due")
		lines = append(lines, x.sent()...)
	}
	x.now = until
	return lines
}
