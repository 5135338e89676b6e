package rip_test

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/rip"
)

// These are the neighbors of the Speaker under test: b is on interface 0, c and d are on interface
// 1.
var (
	b = netip.MustParseAddr("10.0.0.2")
	c = netip.MustParseAddr("10.0.1.2")
	d = netip.MustParseAddr("10.0.1.3")
)

// bench drives one Speaker with text as input and output.
type bench struct {
	*rip.Speaker
	tb  testing.TB
	now clock.Time
}

// newBench starts a Speaker with the networks 10.0.0.0/24 on interface 0 and 10.0.1.0/24 on
// interface 1, and drains its first messages.
func newBench(tb testing.TB, cfg rip.Config) *bench {
	tb.Helper()
	x := newStopped(tb, cfg)
	x.Start(x.now)
	x.sent()
	return x
}

// newStopped is like newBench, but does not start the Speaker.
func newStopped(tb testing.TB, cfg rip.Config) *bench {
	tb.Helper()
	cfg.Neighbors = []rip.Neighbor{{Addr: b, Iface: 0}, {Addr: c, Iface: 1}, {Addr: d, Iface: 1}}
	s, err := rip.NewSpeaker(cfg)
	require.NoError(tb, err)
	x := &bench{Speaker: s, tb: tb, now: 1}
	x.local("10.0.0.0/24", 0, true)
	x.local("10.0.1.0/24", 1, true)
	return x
}

// Input passes a message of the course's dialect to the Speaker.
func (x *bench) Input(now clock.Time, from netip.Addr, iface int, payload []byte) bool {
	return x.Speaker.Input(now, netip.AddrPortFrom(from, 0), iface, payload) == rip.Accepted
}

func (x *bench) local(prefix string, iface int, up bool) {
	x.SetLocal(x.now, netip.MustParsePrefix(prefix), iface, up)
}

// hear delivers a response with the entries "PREFIX=COST PREFIX=COST …".
func (x *bench) hear(from netip.Addr, entries string) {
	x.tb.Helper()
	require.True(x.tb, x.Input(x.now, from, ifaceOf(from), response(x.tb, 12, entries)))
}

func ifaceOf(a netip.Addr) int { return int(a.As4()[2]) }

func response(tb testing.TB, size int, entries string) []byte {
	tb.Helper()
	p := rip.Packet{Command: rip.Response, EntrySize: size}
	for f := range strings.FieldsSeq(entries) {
		prefix, cost, found := strings.Cut(f, "=")
		require.True(tb, found, f)
		var n uint32
		_, err := fmt.Sscan(cost, &n)
		require.NoError(tb, err)
		p.Entries = append(p.Entries, entry(prefix, n))
	}
	return p.Append(nil)
}

// sent drains Output and returns one line per message: "b PREFIX=COST …", or "b ?" for a request.
func (x *bench) sent() (lines []string) {
	x.tb.Helper()
	var m rip.Message
	for x.Output(x.now, &m) {
		require.Equal(x.tb, ifaceOf(m.To), m.Iface)
		p, ok := rip.ParsePacket(m.Payload, nil)
		require.True(x.tb, ok)
		line := map[netip.Addr]string{b: "b", c: "c", d: "d"}[m.To]
		if p.Command == rip.Request {
			line += " ?"
		}
		for _, e := range p.Entries {
			line += fmt.Sprintf(" %v=%d", e.Prefix, e.Cost)
		}
		lines = append(lines, line)
		require.Less(x.tb, len(lines), 1000, "the Speaker sends messages forever")
	}
	return lines
}

// learned drains NextChange. Its lines are "PREFIX via ADDR cost N" or "PREFIX gone".
func (x *bench) learned() (lines []string) {
	for ch, ok := x.NextChange(); ok; ch, ok = x.NextChange() {
		if ch.Gone {
			lines = append(lines, fmt.Sprintf("%v gone", ch.Prefix))
			continue
		}
		require.Equal(x.tb, ifaceOf(ch.NextHop), ch.Iface)
		lines = append(lines, fmt.Sprintf("%v via %v cost %d", ch.Prefix, ch.NextHop, ch.Cost))
	}
	return lines
}

// wait advances the time as a driver does: it calls Advance at each Deadline.
func (x *bench) wait(d time.Duration) {
	until := x.now.Add(d)
	for t := x.Deadline(); t != clock.Never && t <= until; t = x.Deadline() {
		x.now = t
		x.Advance(t)
		require.False(x.tb, x.Deadline().Due(t), "Advance leaves nothing that is due")
	}
	x.now = until
}

func TestStartRequestsAndAnnounces(t *testing.T) {
	// RFC 2453 §3.9.1: a router requests the tables first. The course's nodes announce their own
	// table right after the request.
	x := newStopped(t, rip.Config{})
	assert.Empty(t, x.sent(), "silent before")
	x.Start(x.now)
	own := " 10.0.0.0/24=0 10.0.1.0/24=0"
	assert.Equal(t, []string{"b ?", "b" + own, "c ?", "c" + own, "d ?", "d" + own}, x.sent())
	assert.Empty(t, x.sent())
	assert.Empty(t, x.learned(), "the owner knows its own networks")
}

func TestOutputPayloadIsValidUntilTheNext(t *testing.T) {
	x := newStopped(t, rip.Config{})
	x.Start(x.now)
	var m rip.Message
	require.True(t, x.Output(x.now, &m))
	assert.Equal(t, rip.Message{To: b, Iface: 0, Payload: []byte{0, 1, 0, 0}}, m)
	require.True(t, x.Output(x.now, &m))
	assert.Equal(t, unhex(t, "0002 0002 00000000 0a000000 ffffff00 00000000 0a000100 ffffff00"), m.Payload)
}

func TestRequestIsAnsweredWithTheWholeTable(t *testing.T) {
	x := newBench(t, rip.Config{})
	x.hear(b, "10.5.0.0/16=3")
	x.sent()
	request := []byte{0, 1, 0, 0}
	require.True(t, x.Input(x.now, c, 1, request))
	assert.Equal(t, []string{"c 10.0.0.0/24=0 10.0.1.0/24=0 10.5.0.0/16=4"}, x.sent())

	t.Log("# RFC 2453 §3.4.3: the route is poisoned for the router it was learned from")
	require.True(t, x.Input(x.now, b, 0, request))
	require.True(t, x.Input(x.now, b, 0, request),
		"two requests before the response get one response")
	assert.Equal(t, []string{"b 10.0.0.0/24=0 10.0.1.0/24=0 10.5.0.0/16=16"}, x.sent())
	assert.Equal(t, uint64(3), x.Counters().RequestsIn)
}

func TestPeriodicUpdate(t *testing.T) {
	x := newBench(t, rip.Config{Timers: rip.Timers{AskAfter: -1}})
	x.hear(c, "10.9.0.0/16=0")
	x.sent()
	x.wait(4999 * time.Millisecond)
	assert.Empty(t, x.sent())
	x.wait(time.Millisecond)
	own := " 10.0.0.0/24=0 10.0.1.0/24=0"
	assert.Equal(t, []string{
		"b" + own + " 10.9.0.0/16=1", "c" + own + " 10.9.0.0/16=16", "d" + own + " 10.9.0.0/16=1",
	}, x.sent())
	x.wait(5 * time.Second)
	assert.Len(t, x.sent(), 3)

	t.Log("# missed updates are skipped")
	x.now = x.now.Add(time.Hour)
	x.Advance(x.now)
	assert.Len(t, x.sent(), 3)
	assert.Equal(t, x.now.Add(5*time.Second), x.Deadline())
}

func TestTriggeredUpdateContainsChanges(t *testing.T) {
	// RFC 2453 §3.10.1: a change causes a triggered update, here without a delay.
	x := newBench(t, rip.Config{})
	x.hear(b, "10.6.0.0/16=1 10.5.0.0/16=3")
	assert.Equal(t, []string{
		"b 10.5.0.0/16=16 10.6.0.0/16=16",
		"c 10.5.0.0/16=4 10.6.0.0/16=2",
		"d 10.5.0.0/16=4 10.6.0.0/16=2",
	}, x.sent())
	x.hear(b, "10.6.0.0/16=1 10.5.0.0/16=3")
	assert.Empty(t, x.sent(), "an unchanged route is not announced")

	t.Log("# a route that changes twice before it can be sent is sent once, in its latest state")
	x.hear(b, "10.5.0.0/16=4")
	x.hear(b, "10.5.0.0/16=2")
	x.hear(c, "10.7.0.0/16=2")
	assert.Equal(t, []string{
		"b 10.5.0.0/16=16 10.7.0.0/16=3", "c 10.5.0.0/16=3 10.7.0.0/16=16", "d 10.5.0.0/16=3 10.7.0.0/16=3",
	}, x.sent())
	assert.Equal(t, uint64(6), x.Counters().TriggeredOut)
}

func TestBackpressureMergesChanges(t *testing.T) {
	x := newBench(t, rip.Config{})
	for i := range 10_000 { // the route flaps while the link is blocked
		x.hear(b, fmt.Sprintf("10.5.0.0/16=%d", i%2))
	}
	own := " 10.0.0.0/24=0 10.0.1.0/24=0"
	assert.Equal(t, []string{
		"b" + own + " 10.5.0.0/16=16", "c" + own + " 10.5.0.0/16=2", "d" + own + " 10.5.0.0/16=2",
	}, x.sent(), "a list of changes longer than the table is replaced by the table")

	t.Log("# a change in the middle of an update is announced after it")
	x.wait(5 * time.Second)
	var m rip.Message
	require.True(t, x.Output(x.now, &m))
	x.hear(c, "10.7.0.0/16=1")
	assert.Equal(t, []string{
		"b 10.7.0.0/16=2",
		"c" + own + " 10.5.0.0/16=2 10.7.0.0/16=16",
		"d" + own + " 10.5.0.0/16=2 10.7.0.0/16=2",
	}, x.sent())
}

func TestRouteDeletedBeforeAnnouncement(t *testing.T) {
	x := newBench(t, rip.Config{Timers: rip.Timers{Garbage: time.Second, AskAfter: -1}})
	for i := range 5 { // adds routes, so that not all of them change below
		x.local(fmt.Sprintf("172.%d.0.0/16", i+16), -1, true)
	}
	x.sent()
	x.hear(b, "10.5.0.0/16=1 10.6.0.0/16=1")
	x.hear(b, "10.5.0.0/16=16 10.6.0.0/16=16")
	x.wait(time.Second)
	x.hear(c, "10.5.0.0/16=7")
	assert.Equal(t, []string{"b 10.5.0.0/16=8", "c 10.5.0.0/16=16", "d 10.5.0.0/16=8"}, x.sent(),
		"the new route with the deleted one's prefix is announced once, deleted routes are not")
}

func TestUpdateOfSeveralMessages(t *testing.T) {
	x := newBench(t, rip.Config{})
	for i := range 10 {
		var entries []string
		for j := range 13 {
			entries = append(entries, fmt.Sprintf("10.%d.%d.0/24=1", i+10, j))
		}
		x.hear(b, strings.Join(entries, " "))
	}
	x.sent()
	x.wait(5 * time.Second)
	sizes := map[string][]int{}
	last := map[string]string{}
	for _, line := range x.sent() {
		f := strings.Fields(line)
		sizes[f[0]] = append(sizes[f[0]], len(f)-1)
		first, _, _ := strings.Cut(f[1], "=")
		if last[f[0]] != "" {
			before, after := netip.MustParsePrefix(last[f[0]]), netip.MustParsePrefix(first)
			assert.Negative(t, before.Compare(after), "sorted over all messages")
		}
		last[f[0]], _, _ = strings.Cut(f[len(f)-1], "=")
	}
	assert.Equal(t, map[string][]int{"b": {64, 64, 4}, "c": {64, 64, 4}, "d": {64, 64, 4}}, sizes)
}

func TestFewerEntriesAMessage(t *testing.T) {
	x := newStopped(t, rip.Config{MaxEntries: 1})
	x.Start(x.now)
	assert.Equal(t, []string{"b ?", "b 10.0.0.0/24=0", "b 10.0.1.0/24=0"}, x.sent()[:3])
}

func TestInterfaceDownAndUp(t *testing.T) {
	x := newBench(t, rip.Config{})
	x.hear(b, "10.5.0.0/16=1")
	x.hear(c, "10.6.0.0/16=1")
	x.sent()
	x.learned()
	t.Log("# down: its network and all routes through it are withdrawn at once on the other links")
	x.local("10.0.1.0/24", 1, false)
	assert.Equal(t, []string{"10.6.0.0/16 gone"}, x.learned())
	assert.Equal(t, []string{"b 10.0.1.0/24=16 10.6.0.0/16=16"}, x.sent())

	t.Log("# no message is sent there, and messages from there are ignored")
	assert.False(t, x.Input(x.now, c, 1, response(t, 12, "10.6.0.0/16=1")))
	x.wait(time.Second)
	assert.Equal(t, []string{"b ?"}, x.sent(), "the other neighbors are asked for other paths")
	x.wait(4 * time.Second)
	assert.Equal(t, []string{
		"b 10.0.0.0/24=0 10.0.1.0/24=16 10.5.0.0/16=16 10.6.0.0/16=16",
	}, x.sent())

	t.Log("# up: its neighbors get a request and the table, the others get the network")
	x.local("10.0.1.0/24", 1, true)
	all := " 10.0.0.0/24=0 10.0.1.0/24=0 10.5.0.0/16=2 10.6.0.0/16=16"
	assert.Equal(t, []string{"b 10.0.1.0/24=0", "c ?", "c" + all, "d ?", "d" + all}, x.sent())
	x.hear(c, "10.6.0.0/16=1")
	assert.Equal(t, []string{"10.6.0.0/16 via 10.0.1.2 cost 2"}, x.learned())
}

func TestWithdraw(t *testing.T) {
	x := newBench(t, rip.Config{})
	x.hear(b, "10.5.0.0/16=1")
	x.hear(c, "10.6.0.0/16=1")
	x.sent()
	x.Withdraw(1)
	nothing := " 10.0.0.0/24=16 10.0.1.0/24=16 10.5.0.0/16=16 10.6.0.0/16=16"
	assert.Equal(t, []string{"c" + nothing, "d" + nothing}, x.sent(),
		"only to neighbors on the interface")
	x.local("10.0.1.0/24", 1, false)
	assert.Equal(t, []string{"b 10.0.1.0/24=16 10.6.0.0/16=16"}, x.sent())
	x.local("10.0.1.0/24", 1, true)
	all := " 10.0.0.0/24=0 10.0.1.0/24=0 10.5.0.0/16=2 10.6.0.0/16=16"
	assert.Equal(t, []string{"b 10.0.1.0/24=0", "c ?", "c" + all, "d ?", "d" + all}, x.sent())
}

func TestRepeatedUpAndDown(t *testing.T) {
	x := newBench(t, rip.Config{})
	x.local("10.0.1.0/24", 1, true)
	assert.Empty(t, x.sent())
	x.local("10.0.1.0/24", 1, false)
	assert.Len(t, x.sent(), 1)
	x.local("10.0.1.0/24", 1, false)
	assert.Empty(t, x.sent())
}

func TestNetworkOfTwoInterfaces(t *testing.T) {
	x := newBench(t, rip.Config{})
	x.local("10.0.0.0/24", 1, true)
	assert.Empty(t, x.sent())
	x.local("10.0.0.0/24", 0, false)
	assert.Empty(t, x.sent(), "the network is still on the other interface")
	x.local("10.0.0.0/24", 1, false)
	x.local("10.0.1.0/24", 1, false)
	x.local("10.0.0.0/24", 0, true)
	assert.Equal(t, []string{"b ?", "b 10.0.0.0/24=0 10.0.1.0/24=16"}, x.sent())
}

func TestOriginatedNetwork(t *testing.T) {
	x := newBench(t, rip.Config{})
	x.local("172.16.0.0/12", -1, true)
	assert.Equal(t, []string{"b 172.16.0.0/12=0", "c 172.16.0.0/12=0", "d 172.16.0.0/12=0"}, x.sent())
	x.local("172.16.0.0/12", -1, false)
	assert.Equal(t, []string{"b 172.16.0.0/12=16", "c 172.16.0.0/12=16", "d 172.16.0.0/12=16"}, x.sent())
}

func TestLocalNetworkReplacesLearnedRoute(t *testing.T) {
	x := newBench(t, rip.Config{})
	x.hear(b, "10.5.0.0/16=1")
	x.learned()
	x.local("10.5.0.0/16", -1, true)
	assert.Equal(t, []string{"10.5.0.0/16 gone"}, x.learned())
	x.hear(b, "10.5.0.0/16=0")
	assert.Empty(t, x.learned(), "the router's own network has precedence")
	x.wait(time.Minute)
	assert.Empty(t, x.learned(), "an own network does not expire")
	x.local("10.5.0.0/16", -1, false)
	x.hear(b, "10.5.0.0/16=1")
	assert.Equal(t, []string{"10.5.0.0/16 via 10.0.0.2 cost 2"}, x.learned())
}

func TestSetLocalRefusesOtherFamilies(t *testing.T) {
	x := newBench(t, rip.Config{})
	assert.Panics(t, func() { x.local("fd00::/8", 0, true) })
	assert.Panics(t, func() { x.SetLocal(x.now, netip.Prefix{}, 0, false) })
}

func TestRequestsAfterALoss(t *testing.T) {
	// RFC 2453 §3.9.1: a request fills the table "as quickly as possible".
	x := newBench(t, rip.Config{Timers: rip.Timers{Periodic: 10 * time.Second, AskAfter: 500 * time.Millisecond}})
	quiet := func(d time.Duration) {
		t.Helper()
		x.wait(d)
		assert.Empty(t, x.sent())
	}
	lose := func() {
		t.Helper()
		x.hear(b, "10.5.0.0/16=1")
		x.hear(b, "10.5.0.0/16=16")
		require.Len(t, x.sent(), 3, "the triggered updates")
	}
	lose()
	quiet(499 * time.Millisecond)
	lose() // does not postpone the request
	x.wait(time.Millisecond)
	assert.Equal(t, []string{"b ?", "c ?", "d ?"}, x.sent())

	t.Log("# a flapping route is requested once per period")
	lose()
	quiet(9 * time.Second)
	lose()
	x.wait(500 * time.Millisecond) // sends the periodic update
	assert.Len(t, x.sent(), 3)
	quiet(500 * time.Millisecond)
	lose()
	x.wait(500 * time.Millisecond)
	assert.Equal(t, []string{"b ?", "c ?", "d ?"}, x.sent())

	t.Log("# no request if another path was learned meanwhile")
	x.wait(20 * time.Second)
	x.sent()
	lose()
	x.hear(c, "10.5.0.0/16=1")
	x.sent()
	quiet(time.Second)
}

func TestInvalidConfigs(t *testing.T) {
	tests := []struct {
		name string
		cfg  rip.Config
		want string
	}{
		{"negative period", rip.Config{Timers: rip.Timers{Periodic: -1}}, "times must not be negative"},
		{"negative garbage", rip.Config{Timers: rip.Timers{Garbage: -1}}, "times must not be negative"},
		{
			"timeout of a period",
			rip.Config{Timers: rip.Timers{Timeout: 5 * time.Second}},
			"timeout 5s must be longer than the period 5s",
		},
		{"entry size", rip.Config{EntrySize: 20}, "entry size 20 must be 12 or 8"},
		{"entries", rip.Config{MaxEntries: 65}, "65 entries a message: must be 1 to 64"},
		{"negative entries", rip.Config{MaxEntries: -1}, "-1 entries a message: must be 1 to 64"},
		{"routes", rip.Config{MaxRoutes: -5}, "route limit -5 must be positive"},
		{"no address", rip.Config{Neighbors: []rip.Neighbor{{}}}, "neighbor invalid IP on interface 0"},
		{"an IPv6 neighbor", rip.Config{Neighbors: []rip.Neighbor{{Addr: netip.MustParseAddr("::1")}}}, "invalid neighbor ::1 on interface 0"},
		{"a neighbor on no interface", rip.Config{Neighbors: []rip.Neighbor{{Addr: b, Iface: -1}}}, "invalid neighbor 10.0.0.2 on interface -1"},
		{"a neighbor twice", rip.Config{Neighbors: []rip.Neighbor{{Addr: b}, {Addr: b}}}, "duplicate neighbor 10.0.0.2"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := rip.NewSpeaker(tt.cfg)
			require.ErrorIs(t, err, rip.ErrConfig)
			assert.ErrorContains(t, err, tt.want)
		})
	}
}
