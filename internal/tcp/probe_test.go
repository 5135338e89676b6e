package tcp

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// samplesOf collects a connection's samples.
func samplesOf(c *Conn) *[]Info {
	got := &[]Info{}
	c.SetProbe(func(p *Info) { *got = append(*got, *p) })
	return got
}

// TestSamplePerEvent checks that a probe gets a sample of each event at the event's time.
func TestSamplePerEvent(t *testing.T) {
	t.Run("a tail loss probe", func(t *testing.T) {
		s := flight(t, 3, fullOptions, Config{})
		got := samplesOf(s.c)
		for s.c.Info().TailProbes == 0 {
			s.wait(10 * time.Millisecond)
		}
		s.collect()
		require.NotEmpty(t, *got)
		last := (*got)[len(*got)-1]
		assert.Equal(t, s.now, last.Time)
		assert.EqualValues(t, 1, last.TailProbes)
		assert.EqualValues(t, 1, last.TotalRetrans, "the sample follows the transmission")
	})
	t.Run("a window probe", func(t *testing.T) {
		s := opened(t, Config{})
		s.sendWindow(ACK, 1, 1, 0, 0)
		got := samplesOf(s.c)
		s.write(100)
		s.quiet()
		require.NotEmpty(t, *got)
		assert.Equal(t, LimitPersist.String(), (*got)[len(*got)-1].Limited)
		before := len(*got)
		for s.c.Info().WindowProbes == 0 {
			s.wait(10 * time.Millisecond)
		}
		s.expect(ACK, 1, 1, 1)
		require.Greater(t, len(*got), before)
		assert.EqualValues(t, 1, (*got)[len(*got)-1].WindowProbes)
		assert.EqualValues(t, 1, (*got)[len(*got)-1].Nxt)
	})
	t.Run("an undo", func(t *testing.T) {
		s, _ := resendsFirst(t)
		got := samplesOf(s.c)
		s.send(ACK, 1, 4001, 0)
		s.sack(5001, 1, 1001)
		require.NotEmpty(t, *got)
		assert.EqualValues(t, 1, (*got)[len(*got)-1].Undone)
		assert.Equal(t, "open", (*got)[len(*got)-1].CAState)
	})
	t.Run("RFC 3168 §6.1.2: an answer to a mark", func(t *testing.T) {
		s := withECN(t, Config{})
		s.write(5000)
		s.collect()
		got := samplesOf(s.c)
		cwnd := s.c.Info().SndCwnd
		s.send(ACK|ECE, 1, 2001, 0)
		require.NotEmpty(t, *got)
		assert.EqualValues(t, 1, (*got)[len(*got)-1].ECNEchoes)
		assert.Less(t, (*got)[len(*got)-1].SndCwnd, cwnd)
	})
}

// TestSamplePerLimit checks that a probe gets one sample of each change of the sender's limit and
// of each train of data.
func TestSamplePerLimit(t *testing.T) {
	s := opened(t, Config{})
	got := samplesOf(s.c)
	s.write(100)
	s.collect()
	s.write(100)
	s.collect()
	var limits []string
	for _, p := range *got {
		limits = append(limits, p.Limited)
		assert.Zero(t, p.LimitedFor)
	}
	assert.Equal(t, []string{"none", "none", "app", "nagle"}, limits)
	sent := (*got)[1]
	assert.EqualValues(t, 100, sent.BytesSent, "the sample follows the transmission")
	assert.Equal(t, 1, sent.Unacked)
	assert.EqualValues(t, 1, sent.DataSegsOut)
	assert.Equal(t, 100, sent.Pipe)
	s.collect()
	assert.Len(t, *got, 4, "nothing has changed")
}

// TestProbeAllocatesNothing checks that samples allocate no memory.
func TestProbeAllocatesNothing(t *testing.T) {
	p := newPipe(t, Config{})
	samples := 0
	p.a.SetProbe(func(*Info) { samples++ })
	p.move(8 << 20)
	require.Zero(t, testing.AllocsPerRun(20, func() { p.move(1 << 20) }))
	require.Positive(t, samples)
	p.a.SetProbe(nil)
	before := samples
	p.move(1 << 20)
	require.Equal(t, before, samples)
}
