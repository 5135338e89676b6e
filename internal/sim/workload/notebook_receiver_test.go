package workload

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// An acknowledgment has the record of the highest segment without a gap before it, as stored when
// that segment arrived.
func TestReceiverAcknowledgesStoredRecords(t *testing.T) {
	p := peer{limit: 100, window: map[int]Ack{}, contiguous: -1}
	for i, step := range []struct {
		seq  int
		sent float64
		ack  Ack
		none bool
	}{
		{seq: 0, sent: 1, ack: Ack{Seq: 0, SentAt: 1, Bytes: 49}},
		{seq: 1, sent: 2, ack: Ack{Seq: 1, SentAt: 2, Bytes: 49}},
		{seq: 3, sent: 4, ack: Ack{Seq: 1, SentAt: 2, Bytes: 49}},
		{seq: 4, sent: 5, ack: Ack{Seq: 1, SentAt: 2, Bytes: 49}},
		{seq: 6, sent: 7, ack: Ack{Seq: 1, SentAt: 2, Bytes: 49}},
		// segment 4 was sent four seconds ago
		{seq: 2, sent: 9, ack: Ack{Seq: 4, SentAt: 5, Bytes: 49}},
		{seq: 2, sent: 10, ack: Ack{Seq: 4, SentAt: 5, Bytes: 49}},
		{seq: 0, sent: 10, ack: Ack{Seq: 4, SentAt: 5, Bytes: 49}, none: true},
		{seq: 1, sent: 10, none: true}, // not above the highest, so there is no acknowledgment
		{seq: 6, sent: 11, ack: Ack{Seq: 4, SentAt: 5, Bytes: 49}},
		{seq: 5, sent: 12, ack: Ack{Seq: 6, SentAt: 7, Bytes: 49}},
		{seq: 4, sent: 13, none: true},
		{seq: 7, sent: 14, ack: Ack{Seq: 7, SentAt: 14, Bytes: 49}},
	} {
		got, ok := p.arrive(Ack{Seq: step.seq, SentAt: step.sent, Bytes: 49})
		assert.Equal(t, !step.none, ok, "step %d", i)
		if !step.none {
			assert.Equal(t, step.ack, got, "step %d", i)
		}
	}
	assert.Equal(t, 7, p.contiguous)
	assert.Equal(t, uint64(8*49), p.bytes)
	assert.Empty(t, p.window)
}

// The first segment that arrives counts as the beginning: the receiver never notices that segments
// before it were lost.
func TestFirstArrivalStartsTheSequence(t *testing.T) {
	p := peer{limit: 100, window: map[int]Ack{}, contiguous: -1}
	a, ok := p.arrive(Ack{Seq: 3})
	assert.True(t, ok)
	assert.Equal(t, 3, a.Seq)
	_, ok = p.arrive(Ack{Seq: 0})
	assert.False(t, ok)
}

// A receiver whose window is full forgets the highest segment.
func TestReceiverWindowIsLimited(t *testing.T) {
	p := peer{limit: 4, window: map[int]Ack{}, contiguous: -1}
	for _, seq := range []int{0, 5, 7, 9, 11} {
		a, ok := p.arrive(Ack{Seq: seq})
		assert.True(t, ok)
		assert.Equal(t, 0, a.Seq)
		assert.Less(t, len(p.window), 3)
	}
	assert.Contains(t, p.window, 5)
	assert.Contains(t, p.window, 7)
	assert.Equal(t, 7, p.top)
}
