package workload

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// all sends everything that a strategy can send now, and returns the segments' numbers.
func all(s Strategy, now float64) (seqs []int) {
	for p, ok := s.NextPacket(now); ok; p, ok = s.NextPacket(now) {
		seqs = append(seqs, p.Seq)
	}
	return seqs
}

func ack(s Strategy, now float64, seq int) {
	s.ProcessAck(now, &Ack{Seq: seq, SentAt: now - .2, Bytes: 49})
}

// Every third duplicate, of any segment, moves a fixed window back to the first missing segment,
// and the window is retransmitted.
func TestFixedWindowGoesBack(t *testing.T) {
	f := NewFixedWindow(4)
	assert.Equal(t, []int{0, 1, 2, 3}, all(f, 0))
	assert.True(t, math.IsInf(f.Due(), 1))
	ack(f, .2, 0)
	assert.Equal(t, []int{4}, all(f, .2))
	for range 2 {
		ack(f, .3, 0)
		assert.Empty(t, all(f, .3))
	}
	ack(f, .3, 0)
	assert.Equal(t, []int{1, 2, 3, 4}, all(f, .3), "from the first missing segment on")
	ack(f, .4, 3) // skips the acknowledgments of 1 and 2
	assert.Equal(t, []int{5, 6, 7}, all(f, .4))
	ack(f, .5, 2)
	b := f.State()
	assert.Equal(t, 3, b.DuplicateAcks, "the first one of 2 counts as new")
	assert.Equal(t, 3, b.AckCount)
	assert.Equal(t, 4, b.NextAck)
	assert.Equal(t, 6, b.TotalAcks)
	assert.Equal(t, 3*49, b.SentBytes)
	assert.InDelta(t, .6, b.RTT, 1e-9)
}

// The third duplicate of one segment retransmits the next one, halves the threshold and sets the
// window to one. The next new acknowledgment decides where the sender continues.
func TestTahoeRetransmits(t *testing.T) {
	s := NewTahoe(TahoeConfig{Ssthresh: 100, Cwnd: 8})
	assert.Equal(t, []int{0, 1, 2, 3, 4, 5, 6, 7}, all(s, 0))
	ack(s, .2, 0)
	assert.Equal(t, []int{8, 9}, all(s, .2), "slow start: a window of 9 from 1 on")
	for range 3 {
		ack(s, .3, 0)
	}
	b := s.State()
	assert.Equal(t, 1, b.Cwnd)
	assert.Equal(t, 4, b.Ssthresh)
	p, ok := s.NextPacket(.3)
	require.True(t, ok)
	assert.Equal(t, Packet{Seq: 1, SentAt: .3}, p)
	assert.Empty(t, all(s, .4))
	assert.InDelta(t, 1.3, s.Due(), 1e-9)
	assert.Empty(t, all(s, 1.3), "not yet more than a second")
	assert.Equal(t, []int{1}, all(s, 1.31))
	ack(s, 1.5, 0)
	assert.Equal(t, 1, b.Cwnd, "the fourth duplicate does nothing")
	ack(s, 1.5, 4)
	assert.Equal(t, 5, b.NextAck)
	assert.Equal(t, 2, b.Cwnd)
	assert.Equal(t, []int{5, 6}, all(s, 1.5), "it goes back to the first unacknowledged segment")
	ack(s, 1.6, 9)
	assert.Equal(t, []int{7, 8, 9, 10, 11, 12}, all(s, 1.6),
		"it sends segments again that it sent before")
	ack(s, 1.7, 8)
	assert.Equal(t, 4, b.DuplicateAcks, "it has recorded the retransmitted segments below")
	ack(s, 1.8, 12)
	ack(s, 1.9, 8)
	assert.Equal(t, 5, b.DuplicateAcks, "until a new acknowledgment")
}

// A segment without an acknowledgment for four seconds is retransmitted, without backoff, once
// there is nothing else to send.
func TestTahoeTimesOut(t *testing.T) {
	s := NewTahoe(TahoeConfig{Cwnd: 3})
	assert.Equal(t, []int{0, 1, 2}, all(s, 0))
	assert.InDelta(t, 4, s.Due(), 1e-9)
	assert.Empty(t, all(s, 4))
	for now := 4.1; now < 20; now += 4.1 {
		assert.Equal(t, []int{0, 1, 2}, all(s, now))
	}
	assert.Equal(t, 3, s.State().Cwnd, "the window does not change")
	ack(s, 21, 2)
	assert.Equal(t, []int{3, 4, 5, 6}, all(s, 21))
}

// Three late acknowledgments of one segment ask for a segment that the sender has forgotten. The
// document's sender ends there.
func TestTahoeStopsWithAnException(t *testing.T) {
	s := NewTahoe(TahoeConfig{Cwnd: 6})
	all(s, 0)
	ack(s, .2, 5)
	for range 3 {
		assert.Empty(t, s.State().Exception)
		ack(s, .3, 2)
	}
	assert.Equal(t, "KeyError: 3", s.State().Exception)
}

// As published, a Tahoe that begins with (10, 1) never leaves slow start. Without loss, each
// segment number is divisible by the window, so the window always grows. According to the text, the
// window grows by one per window.
func TestTahoeWindowAsPublishedAndAsDescribed(t *testing.T) {
	for _, even := range []bool{false, true} {
		s := NewTahoe(TahoeConfig{Even: even})
		const n = 100_000
		var rounds, seq int
		for ; seq < n; rounds++ {
			flight := all(s, float64(rounds))
			for range flight {
				ack(s, float64(rounds)+.2, seq)
				seq++
			}
		}
		b := s.State()
		if even {
			// The window is 10 + 11 + … segments; after r rounds it is r-3 + 10.
			assert.InDelta(t, rounds+6, b.Cwnd, 2)
			assert.InDelta(t, math.Sqrt(2*n), b.Cwnd, 15)
		} else {
			assert.Equal(t, seq+1, b.Cwnd)
			assert.InDelta(t, math.Log2(n), float64(rounds), 1)
		}
	}
}

// After a loss, the published window grows whenever it happens to divide a segment number. That is
// nearly twice per round trip, not once as in Tahoe.
func TestTahoeWindowGrowsTwiceARoundTrip(t *testing.T) {
	s := NewTahoe(TahoeConfig{Ssthresh: 1, Cwnd: 100})
	h := s.(*tahoe)
	h.SeqNum, h.NextAck, h.end = 1_000_003, 1_000_003, 1_000_003
	const rounds = 200
	for r := range rounds {
		for _, seq := range all(s, float64(r)) {
			ack(s, float64(r)+.2, seq)
		}
	}
	grown := float64(h.Cwnd-100) / rounds
	t.Logf("%.2f a round trip", grown)
	assert.Greater(t, grown, 1.5)
	assert.Less(t, grown, 2.2)
}
