package icmp_test

import (
	"errors"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/icmp"
)

var (
	there  = netip.MustParseAddr("10.1.0.2")
	router = netip.MustParseAddr("10.0.0.2")
)

const start clock.Time = 1

// engine is a ping or a trace.
type engine interface {
	Output(now clock.Time, p *icmp.Packet) bool
	Input(now clock.Time, a *icmp.Answer)
	Deadline() clock.Time
	Advance(now clock.Time)
	Done() bool
}

// network returns the answer to a probe, and the delay of the answer; nil: no answer.
type network func(p icmp.Packet) (time.Duration, *icmp.Answer)

// play runs an engine over a network until it is done, and returns the times at which the engine
// sent packets.
func play(t *testing.T, e engine, net network) (sent []time.Duration) {
	t.Helper()
	now := start
	type arrival struct {
		at clock.Time
		a  *icmp.Answer
	}
	var flying []arrival
	for range 1_000_000 {
		for i := 0; i < len(flying); i++ {
			if flying[i].at.Due(now) {
				e.Input(now, flying[i].a)
				flying = append(flying[:i], flying[i+1:]...)
				i--
			}
		}
		e.Advance(now)
		var p icmp.Packet
		for e.Output(now, &p) {
			sent = append(sent, now.Sub(start))
			p.Data = append([]byte(nil), p.Data...)
			if after, a := net(p); a != nil {
				flying = append(flying, arrival{now.Add(after), a})
			}
		}
		if e.Done() {
			assert.Equal(t, clock.Never, e.Deadline())
			return sent
		}
		next := e.Deadline()
		for _, f := range flying {
			next = clock.Earliest(next, f.at)
		}
		require.NotEqual(t, clock.Never, next, "the engine has no deadline")
		now = max(now, next)
	}
	t.Fatal("the engine does not stop")
	return nil
}

// echoed returns the reply to a request.
func echoed(p icmp.Packet) *icmp.Answer {
	return &icmp.Answer{
		Kind: icmp.Echo, ID: p.ID, Seq: p.Seq, From: p.Dst, Dst: p.Dst, TTL: 62,
		Bytes: 8 + len(p.Data), Data: p.Data,
	}
}

// reported returns an error about a probe.
func reported(p icmp.Packet, v icmp.Verdict, typ icmp.Type, code uint8) *icmp.Answer {
	return &icmp.Answer{
		Kind: p.Kind, ID: p.ID, Seq: p.Seq, From: router, Dst: p.Dst, TTL: 64, Bytes: 36,
		Verdict: v, Type: typ, Code: code,
	}
}

func all(p *icmp.Ping) (list []icmp.Reply) {
	for {
		r, ok := p.Next()
		if !ok {
			return list
		}
		list = append(list, r)
	}
}

func TestPingKeepsItsIntervalAndMeasures(t *testing.T) {
	p := icmp.NewPing(start, icmp.PingConfig{Dst: there, ID: 7, Count: 3, Data: []byte("data")})
	trips := []time.Duration{time.Millisecond, 2 * time.Millisecond, 6 * time.Millisecond}
	sent := play(t, p, func(q icmp.Packet) (time.Duration, *icmp.Answer) {
		assert.Equal(t, uint16(7), q.ID)
		return trips[q.Seq-1], echoed(q)
	})
	assert.Equal(t, []time.Duration{0, time.Second, 2 * time.Second}, sent)
	info := p.Info()
	assert.Equal(t, 3, info.Received)
	assert.Equal(t, 2*time.Second, info.Elapsed, "the time from the first request to the last")
	assert.Equal(t, time.Millisecond, info.Min)
	assert.Equal(t, 3*time.Millisecond, info.Avg)
	assert.Equal(t, 6*time.Millisecond, info.Max)
	assert.InDelta(t, 2.160, float64(info.Mdev)/1e6, 0.001, "the deviation of 1, 2 and 6 ms")
	list := all(p)
	require.Len(t, list, 3)
	assert.Equal(t, 6*time.Millisecond, list[2].RTT)
	assert.Equal(t, 62, list[2].TTL)
	assert.Equal(t, 12, list[2].Bytes)
}

func TestPingWaitTimes(t *testing.T) {
	last := clock.Never
	for _, tt := range []struct {
		name    string
		replies int           // number of replies that arrive
		trip    time.Duration // round trip of each reply
		cfg     icmp.PingConfig
		end     time.Duration
	}{
		{"none: ten seconds", 0, 0, icmp.PingConfig{Count: 2}, 11 * time.Second},
		{
			"none: the configured wait", 0, 0,
			icmp.PingConfig{Count: 2, Wait: 3 * time.Second},
			4 * time.Second,
		},
		{
			"some: the interval", 1, time.Millisecond,
			icmp.PingConfig{Count: 2, Interval: 3 * time.Second},
			6 * time.Second,
		},
		{
			"some: two round trips", 1, 1900 * time.Millisecond,
			icmp.PingConfig{Count: 2, Interval: 2 * time.Second},
			5800 * time.Millisecond,
		},
		{
			"some: a second", 1, time.Millisecond,
			icmp.PingConfig{Count: 2, Interval: 10 * time.Millisecond},
			1010 * time.Millisecond,
		},
		{
			"a deadline", 0, 0,
			icmp.PingConfig{Deadline: 2500 * time.Millisecond},
			2500 * time.Millisecond,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.cfg.Dst = there
			p := icmp.NewPing(start, tt.cfg)
			play(t, p, func(q icmp.Packet) (time.Duration, *icmp.Answer) {
				last = p.Deadline()
				if int(q.Seq) > tt.replies {
					return 0, nil
				}
				return tt.trip, echoed(q)
			})
			if tt.cfg.Deadline > 0 {
				last = start.Add(tt.cfg.Deadline)
			}
			assert.Equal(t, tt.end, last.Sub(start))
		})
	}
}

func TestPingCountsDuplicates(t *testing.T) {
	p := icmp.NewPing(start, icmp.PingConfig{Dst: there, Count: 2})
	now := start
	var q icmp.Packet
	require.True(t, p.Output(now, &q))
	p.Input(now.Add(1e6), echoed(q))
	p.Input(now.Add(3e6), echoed(q))
	elsewhere := echoed(q)
	elsewhere.From = router
	p.Input(now.Add(4e6), elsewhere)
	list := all(p)
	require.Len(t, list, 3)
	assert.False(t, list[0].Duplicate)
	assert.True(t, list[1].Duplicate)
	assert.True(t, list[2].Elsewhere)
	info := p.Info()
	assert.Equal(t, 1, info.Received)
	assert.Equal(t, 2, info.Duplicates)
	assert.Equal(t, 4*time.Millisecond, info.Max, "duplicates are measured too")
	assert.False(t, p.Done())
}

func TestPingFindsWrongData(t *testing.T) {
	p := icmp.NewPing(start, icmp.PingConfig{Dst: there, Count: 2, Data: []byte("abcdef")})
	var q icmp.Packet
	require.True(t, p.Output(start, &q))
	a := echoed(q)
	a.Data = []byte("abXdef")
	p.Input(start, a)
	damaged := echoed(q)
	damaged.Damaged = true
	p.Input(start, damaged)
	list := all(p)
	assert.Equal(t, 2, list[0].WrongAt)
	assert.Equal(t, "c", string(list[0].Want))
	assert.Equal(t, "abXdef", string(list[0].Data))
	assert.Equal(t, 1, p.Info().Corrupted)
}

func TestPingCountsErrorsAndIgnoresOthers(t *testing.T) {
	p := icmp.NewPing(start, icmp.PingConfig{Dst: there, ID: 7, Count: 2})
	var q icmp.Packet
	require.True(t, p.Output(start, &q))
	for _, strange := range []func(*icmp.Answer){
		func(a *icmp.Answer) { a.ID = 8 },
		func(a *icmp.Answer) { a.Seq = 2 },
		func(a *icmp.Answer) { a.Kind = icmp.Datagram },
		func(a *icmp.Answer) { a.Dst = router },
	} {
		a := reported(q, icmp.Unreachable, 3, 1)
		strange(a)
		p.Input(start, a)
	}
	assert.Empty(t, all(p))
	p.Input(start, reported(q, icmp.Noted, 5, 1))
	assert.Zero(t, p.Info().Errors, "a redirect is not an error")
	p.Input(start, reported(q, icmp.Expired, 11, 0))
	assert.Equal(t, 1, p.Info().Errors)
	assert.False(t, p.Done())
	require.True(t, p.Output(start.Add(time.Second), &q))
	p.Refused(start, errors.New("no way"), 0)
	assert.Equal(t, 1, p.Info().Errors, "an unsent request is not an error")
	p.Refused(start, errors.New("too long"), 1400)
	assert.True(t, p.Done(), "one error for each request")
}

func TestPingWithADeadlineEndsAtAnError(t *testing.T) {
	p := icmp.NewPing(start, icmp.PingConfig{Dst: there, Count: 9, Deadline: time.Minute})
	sent := play(t, p, func(q icmp.Packet) (time.Duration, *icmp.Answer) {
		if q.Seq < 3 {
			return 0, echoed(q)
		}
		return 0, reported(q, icmp.Unreachable, 3, 1)
	})
	assert.Len(t, sent, 3)
}

func TestPingWithADeadlineCountsReplies(t *testing.T) {
	p := icmp.NewPing(start, icmp.PingConfig{Dst: there, Count: 2, Deadline: time.Minute})
	sent := play(t, p, func(q icmp.Packet) (time.Duration, *icmp.Answer) {
		if q.Seq%2 == 1 {
			return 0, nil
		}
		return 0, echoed(q)
	})
	assert.Len(t, sent, 4, "every other request is lost")
	assert.Equal(t, 2, p.Info().Received)
}

func TestFloodRate(t *testing.T) {
	const trip = 300 * time.Microsecond
	p := icmp.NewPing(start, icmp.PingConfig{Dst: there, Count: 1000, Flood: true})
	sent := play(t, p, func(q icmp.Packet) (time.Duration, *icmp.Answer) { return trip, echoed(q) })
	assert.Equal(t, 999*trip, sent[999])

	p = icmp.NewPing(start, icmp.PingConfig{Dst: there, Count: 100, Flood: true})
	sent = play(t, p, func(icmp.Packet) (time.Duration, *icmp.Answer) { return 0, nil })
	assert.Equal(t, 990*time.Millisecond, sent[99], "100 per second without replies")

	p = icmp.NewPing(start, icmp.PingConfig{Dst: there, Count: 100, Flood: true})
	sent = play(t, p, func(q icmp.Packet) (time.Duration, *icmp.Answer) { return 0, echoed(q) })
	assert.Equal(t, 99*20*time.Microsecond, sent[99],
		"the rate is limited even if a round trip takes no time")

	p = icmp.NewPing(start, icmp.PingConfig{Dst: there, Count: 3, Adaptive: true})
	sent = play(t, p, func(q icmp.Packet) (time.Duration, *icmp.Answer) { return trip, echoed(q) })
	assert.Equal(t, 4*time.Millisecond, sent[2])
}

func TestPingPreloads(t *testing.T) {
	p := icmp.NewPing(start, icmp.PingConfig{Dst: there, Count: 4, Preload: 3, Outstanding: true})
	sent := play(t, p, func(q icmp.Packet) (time.Duration, *icmp.Answer) {
		return 1500 * time.Millisecond, echoed(q)
	})
	assert.Equal(t, []time.Duration{0, 0, 0, time.Second}, sent)
	assert.Equal(t, 4, p.Info().Pipe)
	late := 0
	for _, r := range all(p) {
		if r.Late {
			late++
		}
	}
	assert.Equal(t, 3, late)
}

func TestSequenceNumbersWrap(t *testing.T) {
	p := icmp.NewPing(start, icmp.PingConfig{Dst: there, Count: 65540, Flood: true})
	play(t, p, func(q icmp.Packet) (time.Duration, *icmp.Answer) { return 0, echoed(q) })
	info := p.Info()
	assert.Equal(t, 65540, info.Received)
	assert.Zero(t, info.Duplicates)
	assert.Equal(t, 1, info.Pipe)
	assert.Len(t, all(p), 1024, "unread results are bounded")
}
