package rip_test

import (
	"encoding/hex"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/rip"
)

// RFC 2453 §3.6 and §4 define the bytes of a message.
func TestMessage2OnTheWire(t *testing.T) {
	b := message2(t, rip.Response, 2, "10.5.0.0/16=3#7@10.0.0.9 0.0.0.0/0=16")
	assert.Equal(t, "02020000"+
		"00020007"+"0a050000"+"ffff0000"+"0a000009"+"00000003"+
		"00020000"+"00000000"+"00000000"+"00000000"+"00000010", hex.EncodeToString(b))
	p, r := rip.ParsePacket2(b, nil)
	require.Equal(t, rip.Accepted, r)
	assert.Equal(t, " 10.5.0.0/16=3#7@10.0.0.9 0.0.0.0=16", text2(p.Entries))
}

// RFC 2453 §3.9: malformed messages are discarded without further processing.
func TestMalformed2(t *testing.T) {
	good := message2(t, rip.Response, 2, "10.5.0.0/16=3 10.6.0.0/16=3")
	of := func(at int, v byte) []byte {
		b := append([]byte(nil), good...)
		b[at] = v
		return b
	}
	many := message2(t, rip.Response, 2, strings.Repeat("10.5.0.0/16=3 ", 26))
	for name, row := range map[string]struct {
		b    []byte
		want rip.Refusal
	}{
		"nothing":        {nil, rip.RefusedForm},
		"half a header":  {good[:3], rip.RefusedForm},
		"half an entry":  {good[:30], rip.RefusedForm},
		"one extra byte": {append(good[:44:44], 0), rip.RefusedForm},
		"26 entries":     {many, rip.RefusedForm},
		"command 0":      {of(0, 0), rip.RefusedCommand},
		"command 3":      {of(0, 3), rip.RefusedCommand},
		"version 0":      {of(1, 0), rip.RefusedVersion},
		"only a header":  {good[:4], rip.Accepted},
		"version 3 as 2": {of(1, 3), rip.Accepted},
		"unused bytes":   {of(2, 9), rip.Accepted},
	} {
		x := newBench2(t, undelayed())
		assert.Equal(t, row.want, x.say(b, rip.Port, row.b), name)
		assert.Equal(t, row.want == rip.Accepted && len(row.b) > 4, len(x.learned()) > 0, name)
		if row.want != rip.Accepted {
			assert.Equal(t, []rip.Refused{{Reason: row.want, Count: 1}}, x.Refused(), name)
		}
	}
}

// RFC 2453 §3.10: there is one response for each network. RFC 2453 §3.9.1 and §4.5: when a router
// starts, it multicasts a request for the whole table on every network, and announces its own
// networks at their cost (RFC 2453 §3.5).
func TestStart2(t *testing.T) {
	cfg := undelayed()
	cfg.Interfaces[1].Cost = 3
	x := newStopped2(t, cfg)
	x.Start(x.now)
	own := " 10.0.0.0/24=1 10.0.1.0/24=3"
	assert.Equal(t, []string{"all/0 ? *", "all/0" + own, "all/1 ? *", "all/1" + own}, x.sent())
}

// RFC 2453 §3.8: the period is 30 s with a new random offset of up to 5 s each time.
func TestPeriodWithOffset(t *testing.T) {
	x := newBench2(t, plain2())
	seen := map[time.Duration]bool{}
	for range 200 {
		before := x.now
		x.now = x.Deadline()
		x.Advance(x.now)
		require.Len(t, x.sent(), 2)
		d := x.now.Sub(before)
		seen[d] = true
		require.GreaterOrEqual(t, d, 25*time.Second)
		require.LessOrEqual(t, d, 35*time.Second)
	}
	assert.Greater(t, len(seen), 150)
}

// RFC 2453 §3.9.2 says which senders' messages are accepted.
func TestAcceptedSenders(t *testing.T) {
	response := message2(t, rip.Response, 2, "10.5.0.0/16=3")
	request := message2(t, rip.Request, 2, "*")
	for name, row := range map[string]struct {
		from  string
		port  uint16
		iface int
		b     []byte
		want  rip.Refusal
	}{
		"a neighbor":            {"10.0.0.2", 520, 0, response, rip.Accepted},
		"from another port":     {"10.0.0.2", 1024, 0, response, rip.RefusedPort},
		"a request from there":  {"10.0.0.2", 1024, 0, request, rip.Accepted},
		"off the link":          {"10.0.1.2", 520, 0, response, rip.RefusedOffLink},
		"a request from afar":   {"10.9.1.2", 1024, 0, request, rip.RefusedOffLink},
		"the broadcast address": {"10.0.0.255", 520, 0, response, rip.RefusedOffLink},
		"the network's address": {"10.0.0.0", 520, 0, response, rip.RefusedOffLink},
		"ourselves":             {"10.0.0.1", 520, 0, response, rip.RefusedOwn},
		"our other address":     {"10.0.1.1", 520, 0, response, rip.RefusedOwn},
		"an IPv6 address":       {"::1", 520, 0, response, rip.RefusedOffLink},
		"an unknown interface":  {"10.0.0.2", 520, 7, response, rip.RefusedInterface},
	} {
		x := newBench2(t, undelayed())
		from := netip.AddrPortFrom(netip.MustParseAddr(row.from), row.port)
		assert.Equal(t, row.want, x.Input(x.now, from, row.iface, row.b), name)
		assert.Equal(t, row.want == rip.Accepted && row.b[0] == 2, len(x.learned()) > 0, name)
	}
}

// RFC 2453 §3.9.2: an invalid entry is ignored, and the next one is processed.
func TestInvalidEntries(t *testing.T) {
	for entry, want := range map[string]rip.Refusal{
		"10.5.0.0/16=1":           rip.Accepted,
		"10.5.0.0/16=16":          rip.Accepted,
		"0.0.0.0/0=1":             rip.Accepted,
		"10.5.0.0/16=0":           rip.RefusedMetric,
		"10.5.0.0/16=17":          rip.RefusedMetric,
		"10.5.0.0/16=4294967295":  rip.RefusedMetric,
		"127.0.0.0/8=1":           rip.RefusedMartian,
		"0.0.0.0/8=1":             rip.RefusedMartian,
		"224.0.0.0/4=1":           rip.RefusedMartian,
		"255.255.255.255/32=1":    rip.RefusedMartian,
		"10.5.0.0/16=1@10.0.0.1":  rip.RefusedNextHop,
		"10.5.0.0/16=16@10.0.0.1": rip.Accepted,
	} {
		x := newBench2(t, undelayed())
		x.hear(b, entry+" 10.6.0.0/16=1")
		assert.Equal(t, "10.6.0.0/16 via 10.0.0.2 cost 2", last(x.learned()), entry)
		if want == rip.Accepted {
			assert.Empty(t, x.Refused(), entry)
		} else {
			assert.Equal(t, []rip.Refused{{Reason: want, Count: 1}}, x.Refused(), entry)
		}
	}
	x := newBench2(t, undelayed())
	m := message2(t, rip.Response, 2, "10.5.0.0/16=1 10.6.0.0/16=1 10.7.0.0/16=1")
	m[5], m[24+10] = 9, 1 // an unknown address family, and a mask that is not contiguous
	require.Equal(t, rip.Accepted, x.say(b, rip.Port, m))
	assert.Equal(t, []string{"10.7.0.0/16 via 10.0.0.2 cost 2"}, x.learned())
	assert.Equal(t, []rip.Refused{
		{Reason: rip.RefusedFamily, Count: 1},
		{Reason: rip.RefusedMask, Count: 1},
	}, x.Refused())
}

func last(list []string) string {
	if len(list) == 0 {
		return ""
	}
	return list[len(list)-1]
}

// RFC 2453 §3.9.2: the Speaker adds the cost of the network that received the message, up to
// infinity.
func TestCostOfTheLink(t *testing.T) {
	cfg := undelayed()
	cfg.Interfaces[0].Cost = 5
	x := newBench2(t, cfg)
	x.hear(b, "10.5.0.0/16=3 10.6.0.0/16=10 10.7.0.0/16=11")
	assert.Equal(t, []string{"10.5.0.0/16 via 10.0.0.2 cost 8", "10.6.0.0/16 via 10.0.0.2 cost 15"}, x.learned())
}

// RFC 2453 §4.4: the Speaker uses the next hop of an entry if it is on the link.
func TestNextHopIsHonored(t *testing.T) {
	x := newBench2(t, undelayed())
	x.hear(b, "10.5.0.0/16=1@10.0.0.9 10.6.0.0/16=1@10.0.1.2 10.7.0.0/16=1")
	assert.Equal(t, []string{
		"10.5.0.0/16 via 10.0.0.9 cost 2", "10.6.0.0/16 via 10.0.0.2 cost 2", "10.7.0.0/16 via 10.0.0.2 cost 2",
	}, x.learned())
	t.Log("# the router that announced the next hop can withdraw it, and name another")
	x.hear(b, "10.5.0.0/16=1@10.0.0.8")
	assert.Equal(t, []string{"10.5.0.0/16 via 10.0.0.8 cost 2"}, x.learned())
	x.hear(b, "10.5.0.0/16=16")
	assert.Equal(t, []string{"10.5.0.0/16 gone"}, x.learned())
}

// RFC 2453 §4.4: the Speaker announces a next hop only on the link that contains it. RFC 2453 §4.2:
// it announces external routes with their tag, and learned routes keep their tags.
func TestNextHopAndTagAreAnnounced(t *testing.T) {
	x := newBench2(t, undelayed())
	x.SetExternal(x.now, rip.External{
		Prefix: netip.MustParsePrefix("172.16.0.0/12"), Iface: 1, NextHop: d, Tag: 65001, Metric: 4,
	}, true)
	assert.Equal(t, []string{"all/0 172.16.0.0/12=4#65001", "all/1 172.16.0.0/12=4#65001@10.0.1.3"}, x.sent())
	x.hear(b, "10.5.0.0/16=1#99")
	assert.Equal(t, []string{"all/0 10.5.0.0/16=16#99", "all/1 10.5.0.0/16=2#99"}, x.sent())
	x.hear(b, "10.5.0.0/16=1#98")
	assert.Equal(t, "all/1 10.5.0.0/16=2#98", last(x.sent()), "a changed tag is announced")
	x.SetExternal(x.now, rip.External{Prefix: netip.MustParsePrefix("172.16.0.0/12"), Iface: 1}, false)
	assert.Equal(t, []string{"all/0 172.16.0.0/12=16#65001", "all/1 172.16.0.0/12=16#65001"}, x.sent())
}

// RFC 2453 §3.4.3: a route through one router on a link is poisoned for all routers on that link.
func TestPoisonedReverseAppliesToTheLink(t *testing.T) {
	x := newBench2(t, undelayed())
	x.hear(c, "10.5.0.0/16=1")
	assert.Equal(t, []string{"all/0 10.5.0.0/16=2", "all/1 10.5.0.0/16=16"}, x.sent())
}

// RFC 2453 §3.6: a message has at most 25 entries.
func TestMoreThan25(t *testing.T) {
	x := newBench2(t, undelayed())
	for i := range 4 {
		var entries []string
		for j := range 24 {
			entries = append(entries, fmt.Sprintf("10.%d.%d.0/24=1", i+10, j))
		}
		x.hear(b, strings.Join(entries, " "))
	}
	x.sent()
	var sizes []int
	for _, line := range x.wait(30 * time.Second) {
		if strings.HasPrefix(line, "all/1") {
			sizes = append(sizes, len(strings.Fields(line))-1)
		}
	}
	assert.Equal(t, []int{25, 25, 25, 23}, sizes)
}

// RFC 2453 §3.10.1: after a triggered update, further changes wait for 1 to 5 s and are then sent
// as one update. A regular update before that replaces it.
func TestTriggeredUpdatesAreDamped(t *testing.T) {
	cfg := plain2()
	cfg.PeriodicOffset = -1
	x := newBench2(t, cfg)
	x.hear(b, "10.5.0.0/16=1")
	require.Len(t, x.sent(), 2, "the first update is sent at once")
	first := x.now
	x.wait(300 * time.Millisecond)
	x.hear(b, "10.6.0.0/16=1")
	x.hear(b, "10.7.0.0/16=1")
	assert.Empty(t, x.sent())
	next := x.Deadline()
	assert.GreaterOrEqual(t, next.Sub(first), time.Second)
	assert.LessOrEqual(t, next.Sub(first), 5*time.Second)
	assert.Equal(t, []string{
		"all/0 10.6.0.0/16=16 10.7.0.0/16=16", "all/1 10.6.0.0/16=2 10.7.0.0/16=2",
	}, x.wait(next.Sub(x.now)))
	x.wait(29500*time.Millisecond - x.now.Sub(1))
	x.hear(b, "10.8.0.0/16=1")
	require.Len(t, x.sent(), 2)
	x.hear(b, "10.9.0.0/16=1")
	lines := x.wait(10 * time.Second)
	assert.Len(t, lines, 2, "the regular update")
	assert.Contains(t, lines[1], "10.9.0.0/16=2")
}

// RFC 2453 §3.10.1: changes wait for at least a second. Changes of the node's own links wait no
// longer than a second.
func TestOwnLinksAreAnnouncedSoon(t *testing.T) {
	cfg := plain2()
	cfg.PeriodicOffset = -1
	cfg.TriggerMin, cfg.TriggerMax = time.Second, 20*time.Second
	x := newBench2(t, cfg)
	down := func() { x.SetLocal(x.now, netip.MustParsePrefix("10.0.1.0/24"), 1, false) }
	x.hear(b, "10.5.0.0/16=1")
	require.Len(t, x.sent(), 2)
	require.Greater(t, x.Deadline().Sub(x.now), time.Second, "the delay is longer than the minimum")
	x.wait(100 * time.Millisecond)
	down()
	assert.Empty(t, x.sent())
	assert.Equal(t, []string{"all/0 10.0.1.0/24=16"}, x.wait(900*time.Millisecond))
	t.Log("# at once if a second has passed")
	x.SetLocal(x.now, netip.MustParsePrefix("10.0.1.0/24"), 1, true)
	x.sent()
	x.wait(time.Second)
	x.sent()
	x.wait(1500 * time.Millisecond)
	down()
	assert.Equal(t, []string{"all/0 10.0.1.0/24=16"}, x.sent())
}

// RFC 2453 §3.8: a route expires after 180 s and is deleted 120 s later.
func TestTimes2(t *testing.T) {
	x := newBench2(t, undelayed())
	x.hear(b, "10.5.0.0/16=1")
	x.learned()
	x.wait(180*time.Second - 1)
	assert.Empty(t, x.learned())
	lines := x.wait(1)
	assert.Equal(t, []string{"10.5.0.0/16 gone"}, x.learned())
	assert.Contains(t, strings.Join(lines, "\n"), "10.5.0.0/16=16", "announced at once")
	assert.Contains(t, last(x.wait(119*time.Second)), "10.5.0.0/16=16")
	assert.NotContains(t, last(x.wait(30*time.Second)), "10.5.0.0/16")
}

// With hold-down, only a shorter path is accepted for a while after a loss.
func TestHoldDown(t *testing.T) {
	cfg := undelayed()
	cfg.HoldDown = 60 * time.Second
	x := newBench2(t, cfg)
	x.hear(b, "10.5.0.0/16=3")
	x.hear(b, "10.5.0.0/16=16")
	x.learned()
	x.hear(c, "10.5.0.0/16=3")
	x.hear(b, "10.5.0.0/16=3")
	assert.Empty(t, x.learned(), "the path is not shorter than the lost one")
	x.hear(c, "10.5.0.0/16=2")
	assert.Equal(t, []string{"10.5.0.0/16 via 10.0.1.2 cost 3"}, x.learned())
	x.hear(c, "10.5.0.0/16=16")
	x.learned()
	x.wait(60 * time.Second)
	x.hear(b, "10.5.0.0/16=9")
	assert.Equal(t, []string{"10.5.0.0/16 via 10.0.0.2 cost 10"}, x.learned())
}

func TestInterfaceDownAndUp2(t *testing.T) {
	x := newBench2(t, undelayed())
	x.hear(c, "10.6.0.0/16=1")
	x.sent()
	x.learned()
	n1 := netip.MustParsePrefix("10.0.1.0/24")
	x.Withdraw(1)
	assert.Equal(t, []string{"all/1 10.0.0.0/24=16 10.0.1.0/24=16 10.6.0.0/16=16"}, x.sent())
	x.SetLocal(x.now, n1, 1, false)
	assert.Equal(t, []string{"10.6.0.0/16 gone"}, x.learned())
	assert.Equal(t, []string{"all/0 10.0.1.0/24=16 10.6.0.0/16=16"}, x.sent())
	assert.Equal(t, rip.RefusedInterface, x.say(c, rip.Port, message2(t, rip.Response, 2, "10.6.0.0/16=1")))
	x.SetLocal(x.now, n1, 1, true)
	assert.Equal(t, []string{
		"all/0 10.0.1.0/24=1", "all/1 ? *", "all/1 10.0.0.0/24=1 10.0.1.0/24=1 10.6.0.0/16=16",
	}, x.sent())
}

func TestTimersAtRunTime(t *testing.T) {
	x := newBench2(t, undelayed())
	timers := x.Timers()
	timers.Periodic, timers.Timeout = 2*time.Second, 7*time.Second
	require.NoError(t, x.SetTimers(x.now, timers))
	assert.Len(t, x.wait(10*time.Second), 10)
	x.hear(b, "10.5.0.0/16=1")
	x.learned()
	x.wait(7 * time.Second)
	assert.Equal(t, []string{"10.5.0.0/16 gone"}, x.learned())
	timers.Timeout = time.Second
	require.ErrorIs(t, x.SetTimers(x.now, timers), rip.ErrConfig)
	assert.Equal(t, 7*time.Second, x.Timers().Timeout)
}
