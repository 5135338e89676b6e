package icmp_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/icmp"
)

// traceTo returns the usual configuration of a traceroute.
func traceTo(kind icmp.Kind, port uint16) icmp.TraceConfig {
	return icmp.TraceConfig{
		Dst: there, Kind: kind, ID: 50000, Port: port, First: 1, Max: 30, Queries: 3,
		Parallel: 16, Wait: 5 * time.Second, Here: 3, Near: 10,
	}
}

// pathOf is a network with that many hops to the destination. Each hop delays packets by a
// millisecond.
func pathOf(hops int) network {
	return func(p icmp.Packet) (time.Duration, *icmp.Answer) {
		if int(p.TTL) < hops {
			return time.Duration(p.TTL) * time.Millisecond, reported(p, icmp.Expired, 11, 0)
		}
		a := reported(p, icmp.Unreachable, 3, 3)
		a.From = there
		return time.Duration(hops) * time.Millisecond, a
	}
}

func hops(tr *icmp.Trace) (list [][]icmp.Reply) {
	for {
		_, replies, ok := tr.Hop()
		if !ok {
			return list
		}
		list = append(list, replies)
	}
}

func TestTraceFindsTheHops(t *testing.T) {
	for _, kind := range []icmp.Kind{icmp.Datagram, icmp.Echo, icmp.SYN} {
		tr := icmp.NewTrace(traceTo(kind, 33434))
		seen := map[uint32]bool{}
		sent := play(t, tr, func(p icmp.Packet) (time.Duration, *icmp.Answer) {
			seen[uint32(p.ID)<<16|uint32(p.Seq)] = true
			if kind == icmp.SYN {
				assert.Equal(t, uint16(33434), p.Seq, "one port")
			} else {
				assert.Equal(t, uint16(50000), p.ID, "one source")
			}
			return pathOf(3)(p)
		})
		assert.Len(t, seen, len(sent), "all probes differ")
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

func TestTraceLimitsParallelProbes(t *testing.T) {
	cfg := traceTo(icmp.Datagram, 33434)
	cfg.Parallel = 1
	tr := icmp.NewTrace(cfg)
	sent := play(t, tr, pathOf(2))
	assert.Equal(t, []time.Duration{0, 1e6, 2e6, 3e6, 5e6, 7e6}, sent, "one after another")
}

func TestTraceWaitTimes(t *testing.T) {
	silent := func(ttl uint8, answer int) network {
		seen := 0
		return func(p icmp.Packet) (time.Duration, *icmp.Answer) {
			if p.TTL == ttl {
				if seen++; seen != answer {
					return 0, nil
				}
			}
			return pathOf(3)(p)
		}
	}
	for _, tt := range []struct {
		name string
		net  network
		cfg  func(*icmp.TraceConfig)
		took time.Duration
	}{
		{"another of the hop: three times", silent(1, 1), nil, 3 * (1 + 1) * time.Millisecond},
		{"a later hop: ten times", silent(1, 0), nil, 10 * (2 + 1) * time.Millisecond},
		{
			"no answered probe", silent(1, 0),
			func(c *icmp.TraceConfig) { c.Near = 0; c.Wait = time.Second }, time.Second,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			cfg := traceTo(icmp.Datagram, 33434)
			if tt.cfg != nil {
				tt.cfg(&cfg)
			}
			tr := icmp.NewTrace(cfg)
			due := start
			play(t, recording{tr, &due}, tt.net)
			assert.Equal(t, tt.took, due.Sub(start))
			list := hops(tr)
			require.Len(t, list, 3)
			assert.False(t, list[0][1].From.IsValid(), "a star")
		})
	}
}

func TestTraceEndsAtUnreachable(t *testing.T) {
	tr := icmp.NewTrace(traceTo(icmp.Datagram, 33434))
	play(t, tr, func(p icmp.Packet) (time.Duration, *icmp.Answer) {
		if p.TTL == 1 {
			return time.Millisecond, reported(p, icmp.Expired, 11, 0)
		}
		return time.Millisecond, reported(p, icmp.Unreachable, 3, 1)
	})
	list := hops(tr)
	require.Len(t, list, 2)
	assert.Equal(t, uint8(1), list[1][0].Code)
}

func TestTraceGivesUp(t *testing.T) {
	cfg := traceTo(icmp.Echo, 1)
	cfg.Max, cfg.First, cfg.Queries = 4, 2, 1
	tr := icmp.NewTrace(cfg)
	play(t, tr, func(icmp.Packet) (time.Duration, *icmp.Answer) { return 0, nil })
	ttl, replies, ok := tr.Hop()
	require.True(t, ok)
	assert.Equal(t, 2, ttl)
	assert.False(t, replies[0].From.IsValid())
	assert.Len(t, hops(tr), 2)
}

func TestTraceThatCannotSendEnds(t *testing.T) {
	tr := icmp.NewTrace(traceTo(icmp.Datagram, 33434))
	var p icmp.Packet
	require.True(t, tr.Output(start, &p))
	tr.Refused(start, errors.New("no way"), 0)
	assert.True(t, tr.Done())
	list := hops(tr)
	require.Len(t, list, 1)
	assert.Equal(t, icmp.Failed, list[0][0].Verdict)
}

func TestTraceIgnoresUnrelatedAnswers(t *testing.T) {
	tr := icmp.NewTrace(traceTo(icmp.Datagram, 33434))
	var p icmp.Packet
	require.True(t, tr.Output(start, &p))
	for _, strange := range []func(*icmp.Answer){
		func(a *icmp.Answer) { a.Seq++ },
		func(a *icmp.Answer) { a.Seq-- },
		func(a *icmp.Answer) { a.ID++ },
		func(a *icmp.Answer) { a.Kind = icmp.Echo },
		func(a *icmp.Answer) { a.Dst = router },
		func(a *icmp.Answer) { a.Verdict = icmp.Noted },
	} {
		a := reported(p, icmp.Expired, 11, 0)
		strange(a)
		tr.Input(start, a)
	}
	tr.Stop()
	assert.Empty(t, hops(tr))
}

// recording remembers the last deadline of an engine before it was done.
type recording struct {
	*icmp.Trace
	due *clock.Time
}

func (r recording) Deadline() clock.Time {
	d := r.Trace.Deadline()
	if d != clock.Never {
		*r.due = d
	}
	return d
}

// RFC 1191 §3: a probe that is too large is repeated with the size that the router reports.
func TestTraceFindsThePathMTU(t *testing.T) {
	cfg := traceTo(icmp.Datagram, 33434)
	cfg.Parallel, cfg.DF, cfg.Overhead, cfg.Data = 1, true, 28, make([]byte, 64972)
	tr := icmp.NewTrace(cfg)
	links := []int{1400, 1400, 576}
	sizes := []int{}
	play(t, tr, func(p icmp.Packet) (time.Duration, *icmp.Answer) {
		size := len(p.Data) + 28
		sizes = append(sizes, size)
		for ttl, mtu := range links[:p.TTL] {
			if size > mtu {
				a := reported(p, icmp.Unreachable, 3, 4)
				a.MTU = mtu
				return time.Duration(ttl+1) * time.Millisecond, a
			}
		}
		return pathOf(3)(p)
	})
	assert.Equal(t, []int{65000, 1400, 1400, 1400, 1400, 1400, 1400, 1400, 576, 576, 576}, sizes)
	list := hops(tr)
	require.Len(t, list, 3)
	assert.Equal(t, 1400, list[0][0].PathMTU)
	assert.Zero(t, list[1][0].PathMTU)
	assert.Equal(t, 576, list[2][0].PathMTU)
	assert.Equal(t, 3*time.Millisecond, list[2][0].RTT, "since the repeated probe")
}

// RFC 1191 §3: a report that does not reduce the path MTU does not repeat the probe.
func TestTraceIgnoresInvalidMTUs(t *testing.T) {
	for _, mtu := range []int{0, 20, 65000, 65535} {
		cfg := traceTo(icmp.Datagram, 33434)
		cfg.Parallel, cfg.DF, cfg.Overhead, cfg.Data = 1, true, 28, make([]byte, 64972)
		tr := icmp.NewTrace(cfg)
		sent := play(t, tr, func(p icmp.Packet) (time.Duration, *icmp.Answer) {
			a := reported(p, icmp.Unreachable, 3, 4)
			a.MTU = mtu
			return time.Millisecond, a
		})
		assert.Len(t, sent, 3)
	}
}
