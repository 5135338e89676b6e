package reach_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/reach"
)

// traceTo is the usual traceroute.
func traceTo(kind reach.Kind, port uint16) reach.TraceConfig {
	return reach.TraceConfig{
		Dst: there, Kind: kind, ID: 50000, Port: port, First: 1, Max: 30, Queries: 3,
		Parallel: 16, Wait: 5 * time.Second, Here: 3, Near: 10,
	}
}

// hopsAway is a network whose destination is so many hops away, a millisecond each.
func hopsAway(hops int) network {
	return func(p reach.Packet) (time.Duration, *reach.Answer) {
		if int(p.TTL) < hops {
			return time.Duration(p.TTL) * time.Millisecond, reported(p, reach.Expired, 11, 0)
		}
		a := reported(p, reach.Unreachable, 3, 3)
		a.From = there
		return time.Duration(hops) * time.Millisecond, a
	}
}

func hops(tr *reach.Trace) (list [][]reach.Reply) {
	for {
		_, replies, ok := tr.Hop()
		if !ok {
			return list
		}
		list = append(list, replies)
	}
}

func TestTraceFindsTheHops(t *testing.T) {
	for _, kind := range []reach.Kind{reach.Datagram, reach.Echo, reach.SYN} {
		tr := reach.NewTrace(traceTo(kind, 33434))
		seen := map[uint32]bool{}
		sent := play(t, tr, func(p reach.Packet) (time.Duration, *reach.Answer) {
			seen[uint32(p.ID)<<16|uint32(p.Seq)] = true
			if kind == reach.SYN {
				assert.Equal(t, uint16(33434), p.Seq, "one port")
			} else {
				assert.Equal(t, uint16(50000), p.ID, "one source")
			}
			return hopsAway(3)(p)
		})
		assert.Len(t, seen, len(sent), "no two alike")
		list := hops(tr)
		require.Len(t, list, 3)
		for i, replies := range list {
			require.Len(t, replies, 3)
			for _, r := range replies {
				assert.Equal(t, time.Duration(i+1)*time.Millisecond, r.RTT)
			}
		}
		assert.Equal(t, there, list[2][0].From)
	}
}

func TestTraceHasNoMoreThanSoManyUnderWay(t *testing.T) {
	cfg := traceTo(reach.Datagram, 33434)
	cfg.Parallel = 1
	tr := reach.NewTrace(cfg)
	sent := play(t, tr, hopsAway(2))
	assert.Equal(t, []time.Duration{0, 1e6, 2e6, 3e6, 5e6, 7e6}, sent, "one after another")
}

func TestTraceWaitsNoLongerThanItHasReasonTo(t *testing.T) {
	silent := func(ttl uint8, answer int) network {
		seen := 0
		return func(p reach.Packet) (time.Duration, *reach.Answer) {
			if p.TTL == ttl {
				if seen++; seen != answer {
					return 0, nil
				}
			}
			return hopsAway(3)(p)
		}
	}
	for _, tt := range []struct {
		name string
		net  network
		cfg  func(*reach.TraceConfig)
		took time.Duration
	}{
		{"another of the hop: three times", silent(1, 1), nil, 3 * (1 + 1) * time.Millisecond},
		{"a later hop: ten times", silent(1, 0), nil, 10 * (2 + 1) * time.Millisecond},
		{
			"nothing to go by", silent(1, 0),
			func(c *reach.TraceConfig) { c.Near = 0; c.Wait = time.Second }, time.Second,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			cfg := traceTo(reach.Datagram, 33434)
			if tt.cfg != nil {
				tt.cfg(&cfg)
			}
			tr := reach.NewTrace(cfg)
			due := start
			play(t, recording{tr, &due}, tt.net)
			assert.Equal(t, tt.took, due.Sub(start))
			list := hops(tr)
			require.Len(t, list, 3)
			assert.False(t, list[0][1].From.IsValid(), "a star")
		})
	}
}

func TestTraceEndsWhereThereIsNoWayOn(t *testing.T) {
	tr := reach.NewTrace(traceTo(reach.Datagram, 33434))
	play(t, tr, func(p reach.Packet) (time.Duration, *reach.Answer) {
		if p.TTL == 1 {
			return time.Millisecond, reported(p, reach.Expired, 11, 0)
		}
		return time.Millisecond, reported(p, reach.Unreachable, 3, 1)
	})
	list := hops(tr)
	require.Len(t, list, 2)
	assert.Equal(t, uint8(1), list[1][0].Code)
}

func TestTraceGivesUp(t *testing.T) {
	cfg := traceTo(reach.Echo, 1)
	cfg.Max, cfg.First, cfg.Queries = 4, 2, 1
	tr := reach.NewTrace(cfg)
	play(t, tr, func(reach.Packet) (time.Duration, *reach.Answer) { return 0, nil })
	ttl, replies, ok := tr.Hop()
	require.True(t, ok)
	assert.Equal(t, 2, ttl)
	assert.False(t, replies[0].From.IsValid())
	assert.Len(t, hops(tr), 2)
}

func TestTraceThatCannotSendEnds(t *testing.T) {
	tr := reach.NewTrace(traceTo(reach.Datagram, 33434))
	var p reach.Packet
	require.True(t, tr.Output(start, &p))
	tr.Refused(start, errors.New("no way"), 0)
	assert.True(t, tr.Done())
	list := hops(tr)
	require.Len(t, list, 1)
	assert.Equal(t, reach.Failed, list[0][0].Verdict)
}

func TestTraceIgnoresWhatIsNotAboutIt(t *testing.T) {
	tr := reach.NewTrace(traceTo(reach.Datagram, 33434))
	var p reach.Packet
	require.True(t, tr.Output(start, &p))
	for _, strange := range []func(*reach.Answer){
		func(a *reach.Answer) { a.Seq++ },
		func(a *reach.Answer) { a.Seq-- },
		func(a *reach.Answer) { a.ID++ },
		func(a *reach.Answer) { a.Kind = reach.Echo },
		func(a *reach.Answer) { a.Dst = router },
		func(a *reach.Answer) { a.Verdict = reach.Noted },
	} {
		a := reported(p, reach.Expired, 11, 0)
		strange(a)
		tr.Input(start, a)
	}
	tr.Stop()
	assert.Empty(t, hops(tr))
}

// recording notes the last deadline of an engine before it was done.
type recording struct {
	*reach.Trace
	due *clock.Time
}

func (r recording) Deadline() clock.Time {
	d := r.Trace.Deadline()
	if d != clock.Never {
		*r.due = d
	}
	return d
}

// RFC 1191 §3: a probe that is too large is sent again as large as the router says.
func TestTraceFindsThePathsMTU(t *testing.T) {
	cfg := traceTo(reach.Datagram, 33434)
	cfg.Parallel, cfg.DF, cfg.Overhead, cfg.Data = 1, true, 28, make([]byte, 64972)
	tr := reach.NewTrace(cfg)
	links := []int{1400, 1400, 576}
	sizes := []int{}
	play(t, tr, func(p reach.Packet) (time.Duration, *reach.Answer) {
		size := len(p.Data) + 28
		sizes = append(sizes, size)
		for ttl, mtu := range links[:p.TTL] {
			if size > mtu {
				a := reported(p, reach.Unreachable, 3, 4)
				a.MTU = mtu
				return time.Duration(ttl+1) * time.Millisecond, a
			}
		}
		return hopsAway(3)(p)
	})
	assert.Equal(t, []int{65000, 1400, 1400, 1400, 1400, 1400, 1400, 1400, 576, 576, 576}, sizes)
	list := hops(tr)
	require.Len(t, list, 3)
	assert.Equal(t, 1400, list[0][0].PathMTU)
	assert.Zero(t, list[1][0].PathMTU)
	assert.Equal(t, 576, list[2][0].PathMTU)
	assert.Equal(t, 3*time.Millisecond, list[2][0].RTT, "since it was sent again")
}

// RFC 1191 §3: what does not shrink the path's MTU is no reason to send again.
func TestTraceThatIsToldNonsenseAboutMTUsEnds(t *testing.T) {
	for _, mtu := range []int{0, 20, 65000, 65535} {
		cfg := traceTo(reach.Datagram, 33434)
		cfg.Parallel, cfg.DF, cfg.Overhead, cfg.Data = 1, true, 28, make([]byte, 64972)
		tr := reach.NewTrace(cfg)
		sent := play(t, tr, func(p reach.Packet) (time.Duration, *reach.Answer) {
			a := reported(p, reach.Unreachable, 3, 4)
			a.MTU = mtu
			return time.Millisecond, a
		})
		assert.Len(t, sent, 3)
	}
}
