package rip_test

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/rip"
)

// benchNG drives a RIPng Speaker with text as input and output. The Speaker has fe80::1 on both
// interfaces, as a router may have one link-local address on all links.
type benchNG struct {
	*rip.Speaker
	tb  testing.TB
	now clock.Time
}

// ngB is a neighbor on interface 0, ngC on interface 1.
var ngB, ngC = netip.MustParseAddr("fe80::b"), netip.MustParseAddr("fe80::c")

func plainNG() rip.Config {
	link := netip.MustParsePrefix("fe80::1/64")
	return rip.Config{
		Dialect:    rip.RIPng,
		Interfaces: []rip.Interface{{Addr: link}, {Addr: link}},
		Timers:     rip.Timers{TriggerMin: -1, TriggerMax: -1, PeriodicOffset: -1},
	}
}

func newStoppedNG(tb testing.TB, cfg rip.Config) *benchNG {
	tb.Helper()
	s, err := rip.NewSpeaker(cfg)
	require.NoError(tb, err)
	x := &benchNG{Speaker: s, tb: tb, now: 1}
	for i := range cfg.Interfaces {
		x.SetLocal(x.now, netip.MustParsePrefix(fmt.Sprintf("2001:db8:%x::/64", i)), i, true)
	}
	return x
}

func newBenchNG(tb testing.TB, cfg rip.Config) *benchNG {
	tb.Helper()
	x := newStoppedNG(tb, cfg)
	x.Start(x.now)
	x.sent()
	return x
}

// messageNG builds a message from "PREFIX=METRIC" entries with an optional "#TAG", "@NEXTHOP" for
// an entry with a next hop, and "*" for the entry that requests the whole table. RFC 2080 §2.1
// defines the layout.
func messageNG(tb testing.TB, c rip.Command, entries string) []byte {
	tb.Helper()
	b := []byte{byte(c), 1, 0, 0}
	add := func(a netip.Addr, tag uint16, bits, metric int) {
		addr := a.As16()
		b = binary.BigEndian.AppendUint16(append(b, addr[:]...), tag)
		b = append(b, byte(bits), byte(metric))
	}
	for f := range strings.FieldsSeq(entries) {
		if hop, found := strings.CutPrefix(f, "@"); found {
			add(netip.MustParseAddr(hop), 0, 0, 0xff)
			continue
		}
		if f == "*" {
			f = "::/0=16"
		}
		var tag uint16
		f, text, found := strings.Cut(f, "#")
		if found {
			_, err := fmt.Sscan(text, &tag)
			require.NoError(tb, err)
		}
		prefix, text, _ := strings.Cut(f, "=")
		addr, length, _ := strings.Cut(prefix, "/")
		var bits, metric int
		_, err := fmt.Sscan(length, &bits)
		require.NoError(tb, err)
		_, err = fmt.Sscan(text, &metric)
		require.NoError(tb, err)
		add(netip.MustParseAddr(addr), tag, bits, metric)
	}
	return b
}

// textNG converts a message to text: a "?" if it is a request, and its entries as messageNG
// parses them.
func textNG(tb testing.TB, b []byte) string {
	tb.Helper()
	require.GreaterOrEqual(tb, len(b), 4)
	require.Equal(tb, []byte{1, 0, 0}, b[1:4], "version 1, and zero")
	var words []string
	if b[0] == byte(rip.Request) {
		words = append(words, "?")
	}
	for b = b[4:]; len(b) > 0; b = b[20:] {
		require.GreaterOrEqual(tb, len(b), 20)
		addr, tag := netip.AddrFrom16([16]byte(b)), binary.BigEndian.Uint16(b[16:])
		switch {
		case b[19] == 0xff:
			require.Zero(tb, int(b[18])+int(tag), "RFC 2080 §2.1.1: zero on sending")
			words = append(words, "@"+addr.String())
			continue
		case b[18] == 0 && b[19] == 16:
			words = append(words, "*")
			continue
		}
		word := fmt.Sprintf("%v/%d=%d", addr, b[18], b[19])
		if tag != 0 {
			word += fmt.Sprintf("#%d", tag)
		}
		words = append(words, word)
	}
	return strings.Join(words, " ")
}

func (x *benchNG) say(from netip.Addr, port uint16, b []byte) rip.Refusal {
	iface := 0
	if from == ngC {
		iface = 1
	}
	return x.Input(x.now, netip.AddrPortFrom(from, port), iface, b)
}

// hear delivers a response that must be accepted.
func (x *benchNG) hear(from netip.Addr, entries string) {
	x.tb.Helper()
	require.Equal(x.tb, rip.Accepted, x.say(from, rip.PortNG, messageNG(x.tb, rip.Response,
		entries)))
}

// sent drains Output and returns a line for each message.
func (x *benchNG) sent() (lines []string) {
	x.tb.Helper()
	var m rip.Message
	for x.Output(x.now, &m) {
		to := fmt.Sprintf("%v:%d/%d", m.To, m.Port, m.Iface)
		to = strings.Replace(to, "ff02::9:521", "all", 1)
		lines = append(lines, to+" "+textNG(x.tb, m.Payload))
	}
	return lines
}

// learned drains NextChange and returns a line for each route.
func (x *benchNG) learned() (lines []string) {
	for c, ok := x.NextChange(); ok; c, ok = x.NextChange() {
		if c.Gone {
			lines = append(lines, fmt.Sprintf("%v gone", c.Prefix))
			continue
		}
		lines = append(lines, fmt.Sprintf("%v via %v/%d cost %d", c.Prefix, c.NextHop, c.Iface, c.Cost))
	}
	return lines
}

// RFC 2080 §2.1 defines the bytes of a message.
func TestMessageNGOnTheWire(t *testing.T) {
	x := newStoppedNG(t, plainNG())
	x.SetExternal(x.now, rip.External{
		Prefix: netip.MustParsePrefix("2001:db8:f::/48"), Tag: 7, Metric: 3, Iface: -1,
	}, true)
	x.Start(x.now)
	var m rip.Message
	require.True(t, x.Output(x.now, &m))
	assert.Equal(t, "01010000"+strings.Repeat("00", 16)+"0000"+"00"+"10", hex.EncodeToString(m.Payload))
	assert.Equal(t, rip.Message{To: rip.MulticastNG, Port: 521, Payload: m.Payload}, m)
	require.True(t, x.Output(x.now, &m))
	assert.Equal(t, "02010000"+
		"20010db8000000000000000000000000"+"0000"+"40"+"01"+
		"20010db8000100000000000000000000"+"0000"+"40"+"01"+
		"20010db8000f00000000000000000000"+"0007"+"30"+"03", hex.EncodeToString(m.Payload))
}

// RFC 2080 §2.4.1 and §2.5.2: when a router starts, it multicasts a request and its table to
// ff02::9 on every link. The metric of a link's network is the cost of its interface.
func TestStartNG(t *testing.T) {
	cfg := plainNG()
	cfg.Interfaces[1].Cost = 3
	x := newStoppedNG(t, cfg)
	x.Start(x.now)
	own := " 2001:db8::/64=1 2001:db8:1::/64=3"
	assert.Equal(t, []string{"all/0 ? *", "all/0" + own, "all/1 ? *", "all/1" + own}, x.sent())
}

// RFC 2080 §2.1 and §2.4.2: malformed messages are discarded.
func TestMalformedNG(t *testing.T) {
	good := messageNG(t, rip.Response, "2001:db8:5::/48=3 2001:db8:6::/48=3")
	of := func(at int, v byte) []byte {
		b := slices.Clone(good)
		b[at] = v
		return b
	}
	for name, row := range map[string]struct {
		b    []byte
		want rip.Refusal
	}{
		"nothing":        {nil, rip.RefusedForm},
		"half a header":  {good[:3], rip.RefusedForm},
		"half an entry":  {good[:30], rip.RefusedForm},
		"one extra byte": {append(slices.Clone(good), 0), rip.RefusedForm},
		"command 0":      {of(0, 0), rip.RefusedCommand},
		"command 3":      {of(0, 3), rip.RefusedCommand},
		"version 0":      {of(1, 0), rip.RefusedVersion},
		"version 2":      {of(1, 2), rip.RefusedVersion},
		"only a header":  {good[:4], rip.Accepted},
		"unused bytes":   {of(2, 9), rip.Accepted},
	} {
		x := newBenchNG(t, plainNG())
		assert.Equal(t, row.want, x.say(ngB, rip.PortNG, row.b), name)
		assert.Equal(t, row.want == rip.Accepted && len(row.b) > 4, len(x.learned()) > 0, name)
		if row.want != rip.Accepted {
			assert.Equal(t, []rip.Refused{{Reason: row.want, Count: 1}}, x.Refused(), name)
		}
	}
}

// RFC 2080 §2.4.2: the source of a response is a link-local address of another router, from port
// 521.
func TestAcceptedSendersNG(t *testing.T) {
	response := messageNG(t, rip.Response, "2001:db8:5::/48=3")
	request := messageNG(t, rip.Request, "*")
	for name, row := range map[string]struct {
		from  string
		port  uint16
		iface int
		b     []byte
		want  rip.Refusal
	}{
		"a neighbor":               {"fe80::b", 521, 0, response, rip.Accepted},
		"from another port":        {"fe80::b", 1024, 0, response, rip.RefusedPort},
		"from RIP's port":          {"fe80::b", 520, 0, response, rip.RefusedPort},
		"a request from there":     {"fe80::b", 1024, 0, request, rip.Accepted},
		"a global address":         {"2001:db8::b", 521, 0, response, rip.RefusedOffLink},
		"a request from there too": {"2001:db8::b", 1024, 0, request, rip.RefusedOffLink},
		"a multicast address":      {"ff02::9", 521, 0, response, rip.RefusedOffLink},
		"ourselves":                {"fe80::1", 521, 0, response, rip.RefusedOwn},
		"an IPv4 address":          {"10.0.0.2", 521, 0, response, rip.RefusedOffLink},
		"an unknown interface":     {"fe80::b", 521, 7, response, rip.RefusedInterface},
	} {
		x := newBenchNG(t, plainNG())
		from := netip.AddrPortFrom(netip.MustParseAddr(row.from), row.port)
		assert.Equal(t, row.want, x.Input(x.now, from, row.iface, row.b), name)
		assert.Equal(t, row.want == rip.Accepted && row.b[0] == 2, len(x.learned()) > 0, name)
	}
	x := newBenchNG(t, plainNG())
	from := netip.AddrPortFrom(ngB, rip.PortNG)
	assert.Equal(t, rip.RefusedHopLimit, x.Refuse(from, 0, rip.RefusedHopLimit))
	assert.Equal(t, []rip.Refused{{Reason: rip.RefusedHopLimit, Count: 1}}, x.Refused())
}

// RFC 2080 §2.4.2: an invalid entry is ignored, and the next one is processed.
func TestInvalidEntriesNG(t *testing.T) {
	for entry, want := range map[string]rip.Refusal{
		"2001:db8:5::/48=1":          rip.Accepted,
		"2001:db8:5::/48=16":         rip.Accepted,
		"2001:db8:5::1/48=1":         rip.Accepted, // host bits are ignored
		"::/0=1":                     rip.Accepted,
		"2001:db8::5/128=1":          rip.Accepted,
		"2001:db8:5::/129=1":         rip.RefusedMask,
		"2001:db8:5::/48=0":          rip.RefusedMetric,
		"2001:db8:5::/48=17":         rip.RefusedMetric,
		"2001:db8:5::/48=254":        rip.RefusedMetric,
		"ff00::/8=1":                 rip.RefusedMartian,
		"fe80::/64=1":                rip.RefusedMartian,
		"::1/128=1":                  rip.RefusedMartian,
		"::/8=1":                     rip.RefusedMartian,
		"::ffff:10.0.0.0/104=1":      rip.RefusedMartian,
		"@fe80::1 2001:db8:5::/48=1": rip.RefusedNextHop,
	} {
		x := newBenchNG(t, plainNG())
		x.hear(ngB, entry+" @:: 2001:db8:6::/48=1")
		got := x.learned()
		require.NotEmpty(t, got, entry)
		assert.Equal(t, "2001:db8:6::/48 via fe80::b/0 cost 2", got[len(got)-1], entry)
		if want == rip.Accepted {
			assert.Empty(t, x.Refused(), entry)
		} else {
			assert.Equal(t, []rip.Refused{{Reason: want, Count: 1}}, x.Refused(), entry)
		}
	}
}

// RFC 2080 §2.1.1: a next hop applies to the entries after it, until the next one. A next hop that
// is not link-local means the sender.
func TestNextHopNG(t *testing.T) {
	x := newBenchNG(t, plainNG())
	x.hear(ngB, "2001:db8:5::/48=1 @fe80::9 2001:db8:6::/48=1 2001:db8:7::/48=1 @:: 2001:db8:8::/48=1"+
		" @2001:db8::9 2001:db8:9::/48=1")
	assert.Equal(t, []string{
		"2001:db8:5::/48 via fe80::b/0 cost 2",
		"2001:db8:6::/48 via fe80::9/0 cost 2",
		"2001:db8:7::/48 via fe80::9/0 cost 2",
		"2001:db8:8::/48 via fe80::b/0 cost 2",
		"2001:db8:9::/48 via fe80::b/0 cost 2",
	}, x.learned())

	t.Log("# a next hop of the router is announced only on its link")
	x = newStoppedNG(t, plainNG())
	x.SetExternal(x.now, rip.External{
		Prefix: netip.MustParsePrefix("2001:db8:0:5::/64"), NextHop: ngC, Iface: 1,
	}, true)
	x.Start(x.now)
	assert.Equal(t, []string{
		"all/0 ? *",
		"all/0 2001:db8::/64=1 2001:db8:0:5::/64=1 2001:db8:1::/64=1",
		"all/1 ? *",
		"all/1 2001:db8::/64=1 @fe80::c 2001:db8:0:5::/64=1 @:: 2001:db8:1::/64=1",
	}, x.sent())
}

// RFC 2080 §2.1: a message has as many entries as the MTU allows, including next hops. Without an
// MTU the limit is 1280 bytes, which every link supports (RFC 8200 §5). Nothing is lost between
// messages.
func TestMTUBoundsEntriesNG(t *testing.T) {
	for mtu, most := range map[int]int{0: 61, 1280: 61, 1500: 72, 92: 2} {
		cfg := plainNG()
		cfg.Interfaces[0].MTU = mtu
		x := newStoppedNG(t, cfg)
		for i := range 200 {
			hop := netip.Addr{}
			if i%3 == 0 {
				hop = ngB
			}
			x.SetExternal(x.now, rip.External{
				Prefix: netip.MustParsePrefix(fmt.Sprintf("2001:db8:1%03x::/48", i)), NextHop: hop,
			}, true)
		}
		x.Start(x.now)
		seen := 0
		var m rip.Message
		for x.Output(x.now, &m) {
			if m.Iface != 0 {
				continue
			}
			require.LessOrEqual(t, (len(m.Payload)-4)/20, most, "MTU %d", mtu)
			for f := range strings.FieldsSeq(textNG(t, m.Payload)) {
				if strings.HasPrefix(f, "2001:db8:1") && strings.HasSuffix(f, "/48=1") {
					seen++
				}
			}
		}
		assert.Equal(t, 200, seen, "MTU %d", mtu)
	}
}

// RFC 2080 §2.6: split horizon with poisoned reverse applies on the link that the route came from.
func TestPoisonedReverseNG(t *testing.T) {
	x := newBenchNG(t, plainNG())
	x.hear(ngB, "2001:db8:5::/48=1#9")
	assert.Equal(t, []string{
		"all/0 2001:db8:5::/48=16#9", "all/1 2001:db8:5::/48=2#9",
	}, x.sent(), "RFC 2080 §2.5.1: at once")
	assert.Equal(t, []string{"2001:db8:5::/48 via fe80::b/0 cost 2"}, x.learned())
	x.hear(ngB, "2001:db8:5::/48=16")
	assert.Equal(t, []string{"2001:db8:5::/48 gone"}, x.learned())
}

// RFC 2080 §2.3: the timers are 30 s, 180 s and 120 s.
func TestTimersNG(t *testing.T) {
	x := newBenchNG(t, plainNG())
	assert.Equal(t, x.now.Add(30*time.Second), x.Deadline())
	x.hear(ngB, "2001:db8:5::/48=1")
	x.sent()
	x.learned()
	heard := x.now
	var gone, forgotten time.Duration
	for forgotten == 0 {
		x.now = x.Deadline()
		x.Advance(x.now)
		lines := strings.Join(x.sent(), "\n")
		if len(x.learned()) > 0 {
			gone = x.now.Sub(heard)
		}
		if gone > 0 && lines != "" && !strings.Contains(lines, "2001:db8:5::") {
			forgotten = x.now.Sub(heard)
		}
		require.Less(t, x.now.Sub(heard), 10*time.Minute)
	}
	assert.Equal(t, 180*time.Second, gone)
	assert.InDelta(t, 180.0+120+15, forgotten.Seconds(), 16,
		"180 s until the timeout, 120 s at Infinity")
}

// RFC 2080 §2.4.1: the answer to a request for everything is the table. Other requests are answered
// entry by entry without split horizon. The answer goes to the client's port.
func TestRequestsNG(t *testing.T) {
	x := newBenchNG(t, plainNG())
	x.hear(ngB, "2001:db8:5::/48=1")
	x.sent()
	require.Equal(t, rip.Accepted, x.say(ngB, 4000, messageNG(t, rip.Request, "*")))
	assert.Equal(t, []string{
		"fe80::b:4000/0 2001:db8::/64=1 2001:db8:1::/64=1 2001:db8:5::/48=16",
	}, x.sent())
	require.Equal(t, rip.Accepted, x.say(ngC, 4001,
		messageNG(t, rip.Request, "2001:db8:5::/48=0#3 2001:db8:77::/48=4 2001:db8:5::/129=1")))
	assert.Equal(t, []string{
		"fe80::c:4001/1 2001:db8:5::/48=2#3 2001:db8:77::/48=16 2001:db8:5::/129=16",
	}, x.sent())
	require.Equal(t, rip.Accepted, x.say(ngB, 4000, messageNG(t, rip.Request, "")))
	assert.Empty(t, x.sent())
	busy := rip.Accepted
	for port := uint16(5000); busy == rip.Accepted; port++ {
		busy = x.say(ngB, port, messageNG(t, rip.Request, "*"))
		require.Less(t, port, uint16(5100))
	}
	assert.Equal(t, rip.RefusedBusy, busy)

	cfg := plainNG()
	cfg.Interfaces[0].Passive = true
	x = newBenchNG(t, cfg)
	assert.Equal(t, rip.RefusedSilent, x.say(ngB, rip.PortNG, messageNG(t, rip.Request, "*")))
	assert.Equal(t, rip.Accepted, x.say(ngB, 4000, messageNG(t, rip.Request, "*")))
	assert.Len(t, x.sent(), 1)
}

// RFC 2080 §3: RIPng leaves authentication to IPsec. Invalid addresses are rejected.
func TestConfigNG(t *testing.T) {
	for name, change := range map[string]func(c *rip.Config){
		"address 2001:db8::1/64: must be a link-local IPv6 address": func(c *rip.Config) {
			c.Interfaces[0].Addr = netip.MustParsePrefix("2001:db8::1/64")
		},
		"address invalid Prefix: must be a link-local IPv6 address": func(c *rip.Config) {
			c.Interfaces[0].Addr = netip.Prefix{}
		},
		"RIPng has no authentication (RFC 2080 §3): remove the keys": func(c *rip.Config) {
			c.Interfaces[0].Keys = []rip.Key{key(1, rip.KeyedMD5, "tide")}
		},
		"MTU 91 is too small for an entry": func(c *rip.Config) { c.Interfaces[0].MTU = 91 },
		"invalid neighbor 2001:db8::b on interface 0": func(c *rip.Config) {
			c.Neighbors = []rip.Neighbor{{Addr: netip.MustParseAddr("2001:db8::b")}}
		},
	} {
		cfg := plainNG()
		change(&cfg)
		_, err := rip.NewSpeaker(cfg)
		assert.ErrorContains(t, err, name)
	}
	cfg := plainNG()
	cfg.Neighbors = []rip.Neighbor{{Addr: ngB}}
	x := newStoppedNG(t, cfg)
	x.Start(x.now)
	own := " 2001:db8::/64=1 2001:db8:1::/64=1"
	assert.Equal(t, []string{"fe80::b:521/0 ? *", "fe80::b:521/0" + own, "all/1 ? *", "all/1" + own}, x.sent())
	assert.Equal(t, rip.RefusedNotNeighbor, x.say(netip.MustParseAddr("fe80::d"), rip.PortNG,
		messageNG(t, rip.Response, "2001:db8:5::/48=3")))
}

// FuzzInputNG checks that for any input all sent messages are well-formed, metrics are 1 to 16, the
// table does not exceed its limit, and all learned routes are deleted in the end.
func FuzzInputNG(f *testing.F) {
	response := messageNG(f, rip.Response, "2001:db8:5::/48=3 @fe80::9 2001:db8:6::/48=1")
	f.Add(append([]byte{0, byte(len(response))}, response...))
	request := messageNG(f, rip.Request, "*")
	f.Add(append([]byte{2, byte(len(request))}, request...))
	f.Add([]byte{3, 1, 200, 4, 1, 0, 5, 1, 2})
	f.Fuzz(func(t *testing.T, script []byte) {
		cfg := plainNG()
		cfg.MaxRoutes = 8
		x := newBenchNG(t, cfg)
		routes := map[string]bool{}
		check := func() {
			for c, ok := x.NextChange(); ok; c, ok = x.NextChange() {
				if c.Gone {
					require.True(t, routes[c.Prefix.String()])
					delete(routes, c.Prefix.String())
					continue
				}
				require.True(t, 2 <= c.Cost && c.Cost < rip.Infinity, "cost %d", c.Cost)
				require.Equal(t, c.Prefix.Masked(), c.Prefix)
				require.True(t, c.NextHop.IsLinkLocalUnicast())
				routes[c.Prefix.String()] = true
			}
			x.sent()
			require.LessOrEqual(t, len(routes), 8)
		}
		for len(script) >= 2 {
			n := min(int(script[1]), len(script)-2)
			kind, step := script[0], script[2:2+n]
			script = script[2+n:]
			switch kind % 6 {
			case 0:
				x.say(ngB, rip.PortNG, step)
			case 1:
				x.say(ngC, rip.PortNG, step)
			case 2:
				x.say(ngB, 4000, step)
			case 3:
				x.now = x.now.Add(time.Duration(n) * time.Second)
				x.Advance(x.now)
			case 4:
				x.SetLocal(x.now, netip.MustParsePrefix("2001:db8:1::/64"), 1, n&1 == 0)
			case 5:
				x.SetExternal(x.now, rip.External{
					Prefix: netip.MustParsePrefix("2001:db8:5::/48"), NextHop: ngC, Iface: 1,
				}, n&1 == 0)
			}
			check()
		}
		for range 14 {
			x.now = x.now.Add(30 * time.Second)
			x.Advance(x.now)
			check()
		}
		require.Empty(t, routes)
	})
}
