package rip_test

import (
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/rip"
)

// FuzzParsePacket2 checks that a parsed message is written back unchanged, and that nothing panics.
func FuzzParsePacket2(f *testing.F) {
	f.Add(message2(f, rip.Response, 2, "10.5.0.0/16=3#7@10.0.0.9 0.0.0.0/0=16"))
	f.Add(message2(f, rip.Request, 2, "*"))
	f.Add([]byte{2, 1, 0, 0})
	f.Fuzz(func(t *testing.T, b []byte) {
		p, r := rip.ParsePacket2(b, nil)
		if r != rip.Accepted {
			require.Less(t, r, rip.RefusedFamily, "the reason rejects a message, not an entry")
			require.NotEmpty(t, r.String())
			return
		}
		require.LessOrEqual(t, len(p.Entries), rip.MaxEntries2)
		require.NotZero(t, p.Version)
		again := p.Append(nil)
		require.Equal(t, b[:2], again[:2])
		require.Equal(t, b[4:], again[4:])
	})
}

// FuzzInput2 runs a RIPv2 Speaker for a day, with authentication on one link and version 1 on the
// other. For any input, every sent message is well-formed, metrics are 1 to 16, the table does not
// exceed its limit, and all learned routes are deleted at the end.
func FuzzInput2(f *testing.F) {
	plain := message2(f, rip.Response, 2, "10.5.0.0/16=3#7@10.0.1.9 0.0.0.0/0=1")
	sealed := signed(f, keyed(key(1, rip.KeyedMD5, "tide")), time.Second)
	script := func(steps ...[]byte) (all []byte) {
		for i, s := range steps {
			all = append(all, byte(i), byte(len(s)))
			all = append(all, s...)
		}
		return all
	}
	f.Add(script(sealed, plain, message2(f, rip.Request, 2, "*"), []byte{9}, []byte{0}, []byte{1}))
	f.Add(script(plain, message2(f, rip.Response, 1, "10.7.0.0/16=1"), plain[:4], []byte{200}))
	f.Fuzz(func(t *testing.T, script []byte) {
		const maxRoutes = 8
		cfg := plain2()
		cfg.MaxRoutes = maxRoutes
		cfg.Interfaces[0].Keys = []rip.Key{key(1, rip.KeyedMD5, "tide"), key(2, rip.HMACSHA256, "ebb")}
		cfg.Interfaces[1].Send = rip.SendCompatible
		x := newBench2(t, cfg)
		routes := map[netip.Prefix]int{}
		for len(script) >= 2 {
			kind, n := script[0], min(int(script[1]), len(script)-2)
			step := script[2 : 2+n]
			script = script[2+n:]
			x.play(kind, step)
			x.check(routes)
			require.LessOrEqual(t, len(routes), maxRoutes)
		}
		for range 14 {
			x.wait(30 * time.Second)
			x.check(routes)
		}
		require.Empty(t, routes)
	})
}

// play executes one step of a script.
func (x *bench2) play(kind byte, step []byte) {
	var first byte
	if len(step) > 0 {
		first = step[0]
	}
	switch kind % 6 {
	case 0:
		x.say(b, rip.Port, step)
	case 1:
		x.say(c, rip.Port, step)
	case 2:
		x.say(d, uint16(first)+400, step)
	case 3:
		x.wait(time.Duration(first) * time.Second)
	case 4:
		x.SetLocal(x.now, netip.MustParsePrefix("10.0.1.0/24"), 1, first&1 == 0)
	case 5:
		x.SetExternal(x.now, rip.External{
			Prefix: netip.MustParsePrefix("10.5.0.0/16"), NextHop: d, Iface: 1, Tag: uint16(first),
		}, first&1 == 0)
	}
}

// check drains the Speaker and applies its changes.
func (x *bench2) check(routes map[netip.Prefix]int) {
	x.tb.Helper()
	for ch, ok := x.NextChange(); ok; ch, ok = x.NextChange() {
		if ch.Gone {
			require.Contains(x.tb, routes, ch.Prefix)
			delete(routes, ch.Prefix)
			continue
		}
		require.True(x.tb, 2 <= ch.Cost && ch.Cost < rip.Infinity, "cost %d", ch.Cost)
		require.Equal(x.tb, ch.Prefix.Masked(), ch.Prefix)
		require.True(x.tb, ch.NextHop.IsValid())
		routes[ch.Prefix] = ch.Cost
	}
	for _, m := range x.fetch() {
		if m.Payload[4] == 0xff {
			continue
		}
		p, r := rip.ParsePacket2(m.Payload, nil)
		require.Equal(x.tb, rip.Accepted, r)
		for _, e := range p.Entries {
			specific := p.Command == rip.Response && m.To != rip.Multicast
			require.True(x.tb, specific || e.Metric <= rip.Infinity, "metric %d", e.Metric)
		}
	}
	require.NotEqual(x.tb, clock.Never, x.Deadline())
	info := x.Info(x.now)
	require.LessOrEqual(x.tb, len(info.Routes), 8+3)
}
