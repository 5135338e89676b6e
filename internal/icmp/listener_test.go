package icmp_test

import (
	"encoding/hex"
	"math/rand/v2"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/checksum"
	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/icmp"
)

var (
	group4 = netip.MustParseAddr("239.1.2.3")
	group6 = netip.MustParseAddr("ff02::1234")
	local6 = netip.MustParseAddr("fe80::84c7:a3ff:fe42:f707")
)

func newListener(v6 bool) *icmp.Listener { return icmp.NewListener(rand.New(rand.NewPCG(1, 2)), v6) }

// reports returns the reports that a listener sends within a time, in hexadecimal.
func reports(l *icmp.Listener, now *clock.Time, src netip.Addr, d time.Duration) (list []string) {
	end := now.Add(d)
	for {
		var o icmp.Outgoing
		for l.Output(*now, src, &o) {
			list = append(list, hex.EncodeToString(o.Payload))
		}
		next := l.Deadline()
		if next == clock.Never || next > end {
			*now = end
			return list
		}
		*now = next
	}
}

// RFC 3810 §5.2.12, §6.1 and §9, RFC 3376 §4.2.12, §5.1 and §8: joining and leaving a group sends
// the reports that a Linux kernel sends, each twice within a second.
func TestRFC3810_6_1_Changes(t *testing.T) {
	for _, row := range []struct {
		group, src  netip.Addr
		join, leave string
	}{
		{
			group6, local6,
			"8f003fc50000000104000000ff020000000000000000000000001234",
			"8f0040c50000000103000000ff020000000000000000000000001234",
		},
		{group4, netip.MustParseAddr("10.0.0.1"), "2200e8f90000000104000000ef010203", "2200e9f90000000103000000ef010203"},
	} {
		l := newListener(row.group.Is6())
		now := clock.Time(1)
		assert.True(t, l.Join(now, row.group))
		assert.True(t, l.Join(now, row.group))
		assert.True(t, l.IsMember(row.group))
		assert.Equal(t, []string{row.join, row.join}, reports(l, &now, row.src, time.Second))
		l.Join(now, row.group)
		assert.Empty(t, reports(l, &now, row.src, time.Second), "the interface is already a member")
		l.Leave(now, row.group)
		l.Leave(now, row.group)
		assert.False(t, l.IsMember(row.group))
		assert.Equal(t, []string{row.leave, row.leave}, reports(l, &now, row.src, time.Second))
		assert.Equal(t, clock.Never, l.Deadline())
		l.Join(now, row.group)
		l.Leave(now, row.group)
		assert.Equal(t, row.leave, reports(l, &now, row.src, time.Second)[0], "only the last state")

		var o icmp.Outgoing
		l.Join(now, row.group)
		require.True(t, l.Output(now, row.src, &o))
		assert.Equal(t, uint8(1), o.HopLimit)
		assert.True(t, o.RouterAlert)
		if row.group.Is6() {
			assert.Equal(t, netip.MustParseAddr("ff02::16"), o.Dst)
			assert.Equal(t, uint8(58), o.Protocol)
		} else {
			assert.Equal(t, netip.MustParseAddr("224.0.0.22"), o.Dst)
			assert.Equal(t, uint8(2), o.Protocol)
		}
	}
}

// igmpQuery returns a query with a maximum response code.
func igmpQuery(code byte, group netip.Addr, rest ...byte) []byte {
	b := append([]byte{0x11, code, 0, 0}, group.AsSlice()...)
	b = append(b, rest...)
	sum := checksum.Checksum(b)
	b[2], b[3] = byte(sum>>8), byte(sum)
	return b
}

// RFC 3376 §4.1, §4.1.1 and §7.2.1: queries of all versions of IGMP.
func TestRFC3376_4_1_Queries(t *testing.T) {
	v3 := []byte{2, 125, 0, 0}
	for _, row := range []struct {
		name  string
		b     []byte
		delay time.Duration
		group netip.Addr
	}{
		{"general", igmpQuery(100, netip.IPv4Unspecified(), v3...), 10 * time.Second, netip.Addr{}},
		{"of a group", igmpQuery(10, group4, v3...), time.Second, group4},
		{"with an exponent", igmpQuery(0x80|2<<4|3, group4, v3...), (16 + 3) << 5 * time.Second / 10, group4},
		{"version 2", igmpQuery(200, group4), 20 * time.Second, group4},
		{"version 1", igmpQuery(0, netip.IPv4Unspecified()), 10 * time.Second, netip.Addr{}},
	} {
		q, r := icmp.ParseQuery(row.b, 1)
		assert.Equal(t, icmp.Accepted, r, row.name)
		assert.Equal(t, icmp.Query{Group: row.group, Delay: row.delay}, q, row.name)
		_, r = icmp.ParseQuery(row.b, 2)
		assert.Equal(t, icmp.RefusedHopLimit, r, "RFC 3376 §4: the TTL is 1")
		row.b[3] ^= 1
		_, r = icmp.ParseQuery(row.b, 1)
		assert.Equal(t, icmp.RefusedLength, r, "a wrong checksum")
	}
	_, r := icmp.ParseQuery(igmpQuery(1, netip.MustParseAddr("10.0.0.1")), 1)
	assert.Equal(t, icmp.RefusedTarget, r)
	_, r = icmp.ParseQuery(unhex(t, "2200e8f90000000104000000ef010203"), 1)
	assert.Equal(t, icmp.RefusedType, r)
	_, r = icmp.ParseQuery([]byte{0x11}, 1)
	assert.Equal(t, icmp.RefusedLength, r)
	for n := range 8 { // RFC 3376 §7.1: 8 bytes are version 1 or 2, at least 12 are version 3
		_, r = icmp.ParseQuery(igmpQuery(100, group4, make([]byte, n)...), 1)
		assert.Equal(t, n == 0 || n >= 4, r == icmp.Accepted, "%d bytes more", n)
	}
}

// RFC 3810 §5.1 and §6.2: queries that an interface answers, and those that it ignores.
func TestRFC3810_6_2_Queries(t *testing.T) {
	l := newLink6(t)
	a := l.add(1, icmp.InterfaceConfig{Manual: true})
	require.True(t, a.JoinGroup(l.now, group6))
	l.run(time.Minute)
	query := func(code int, group netip.Addr, rest ...byte) *icmp.Message {
		return &icmp.Message{Type: icmp.TypeListenerQuery, Rest: [4]byte(append(be16(code), 0, 0)), Body: append(group.AsSlice(), rest...)}
	}
	v2 := []byte{2, 125, 0, 0}
	ask := func(m *icmp.Message, wait time.Duration) (reports int, r icmp.Refusal) {
		l.log = nil
		r = a.Input(l.now, m, router6, allNodes, 1)
		l.run(wait)
		return len(l.log), r
	}
	n, r := ask(query(1000, netip.IPv6Unspecified(), v2...), time.Second+time.Millisecond)
	assert.Equal(t, icmp.Accepted, r)
	assert.Equal(t, 1, n, "one report for all groups")
	n, _ = ask(query(1000, group6, v2...), time.Second+time.Millisecond)
	assert.Equal(t, 1, n)
	n, _ = ask(query(1000, netip.MustParseAddr("ff02::99"), v2...), time.Minute)
	assert.Zero(t, n, "no member")
	n, _ = ask(query(1000, netip.IPv6Unspecified()), time.Second+time.Millisecond)
	assert.Equal(t, 1, n, "version 1")
	n, _ = ask(query(0x8000|1<<12|5, group6, v2...), (0x1005<<4)*time.Millisecond+time.Second)
	assert.Equal(t, 1, n, "RFC 3810 §5.1.3: an exponent")
	assert.Equal(t, a.local(), l.src, "RFC 3810 §5.2.13: from the link-local address")

	for want, give := range map[icmp.Refusal]func(m *icmp.Message) icmp.Refusal{
		icmp.RefusedHopLimit: func(m *icmp.Message) icmp.Refusal { return a.Input(l.now, m, router6, allNodes, 255) },
		icmp.RefusedSource:   func(m *icmp.Message) icmp.Refusal { return a.Input(l.now, m, hostOne, allNodes, 1) },
		icmp.RefusedCode:     func(m *icmp.Message) icmp.Refusal { m.Code = 1; return a.Input(l.now, m, router6, allNodes, 1) },
		icmp.RefusedLength: func(m *icmp.Message) icmp.Refusal {
			m.Body = m.Body[:15]
			return a.Input(l.now, m, router6, allNodes, 1)
		},
		icmp.RefusedTarget: func(m *icmp.Message) icmp.Refusal {
			for n := range 4 { // RFC 3810 §8.1: 24 bytes are version 1, at least 28 are version 2
				short := *m
				short.Body = m.Body[:16+n]
				want := icmp.RefusedLength
				if n == 0 {
					want = icmp.Accepted
				}
				assert.Equal(t, want, a.Input(l.now, &short, router6, allNodes, 1))
			}
			copy(m.Body, hostOne.AsSlice())
			return a.Input(l.now, m, router6, allNodes, 1)
		},
	} {
		assert.Equal(t, want, give(query(1000, group6, v2...)))
	}
	a.LeaveGroup(l.now, group6)
	assert.False(t, a.IsMember(group6))
	assert.True(t, a.IsMember(allNodes))
}

// RFC 3810 §6, RFC 3376 §5: a node never reports the all-nodes group and interface-local groups. A
// report holds at most 60 groups.
func TestRFC3810_6_ReportedGroups(t *testing.T) {
	l := newListener(true)
	now := clock.Time(1)
	l.Join(now, allNodes)
	l.Join(now, netip.MustParseAddr("ff01::5"))
	assert.Empty(t, reports(l, &now, local6, time.Minute))
	for k := range 100 {
		assert.Equal(t, k < 58, l.Join(now, netip.AddrFrom16([16]byte{0xff, 5, 15: byte(k)})), k)
	}
	list := reports(l, &now, local6, 0)
	require.Len(t, list, 1)
	assert.Len(t, list[0], 2*(8+58*20))
	v4 := newListener(false)
	v4.Join(now, netip.MustParseAddr("224.0.0.1"))
	assert.Empty(t, reports(v4, &now, hostOne, time.Minute))
}

// RFC 3376 §5.2: a query is answered once, within its delay.
func TestRFC3376_5_2_Answers(t *testing.T) {
	l := newListener(false)
	now := clock.Time(1)
	l.Join(now, group4)
	reports(l, &now, hostOne, time.Minute)
	for _, group := range []netip.Addr{{}, group4} {
		for range 3 {
			l.Query(now, icmp.Query{Group: group, Delay: 10 * time.Second})
		}
		assert.Equal(t, []string{"2200eaf90000000102000000ef010203"}, reports(l, &now, hostOne, 10*time.Second+1))
	}
	l.Query(now, icmp.Query{Group: netip.MustParseAddr("239.9.9.9"), Delay: time.Second})
	assert.Equal(t, clock.Never, l.Deadline())
}

func FuzzQuery(f *testing.F) {
	f.Add(igmpQuery(100, netip.IPv4Unspecified(), 2, 125, 0, 0))
	f.Add(igmpQuery(0xff, group4, 2, 125, 0, 0))
	f.Fuzz(func(t *testing.T, b []byte) {
		l := newListener(false)
		l.Join(1, group4)
		q, r := icmp.ParseQuery(b, 1)
		if r != icmp.Accepted {
			return
		}
		require.True(t, q.Delay >= 0 && q.Delay < 3200*time.Second)
		l.Query(1, q)
		now := clock.Time(1)
		require.LessOrEqual(t, len(reports(l, &now, hostOne, time.Hour)), 3)
	})
}
