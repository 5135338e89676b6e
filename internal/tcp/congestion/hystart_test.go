package congestion

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// RFC 9406: HyStart++ leaves slow start while the queue builds up, before it overflows. Standard
// slow start overflows the queue by a window.
func TestRFC9406_ExitsBeforeOverflow(t *testing.T) {
	drops := map[string]int{}
	for _, name := range []string{"reno", "cubic"} {
		b := newBottleneck(10e6, 10000000) // a second of queue
		f := b.add(t, name, 60*time.Millisecond, 0)
		b.run(8 * time.Second)
		drops[name] = f.drops
		got := b.goodput(5 * time.Second)[0]
		t.Logf("%s: %d dropped, %.2f MB/s", name, f.drops, got/1e6)
		if name == "cubic" {
			assert.Zero(t, f.losses)
			assert.GreaterOrEqual(t, f.c.Cwnd(), f.c.Ssthresh(), "out of slow start")
			assert.Greater(t, got, 9.5e6, "the path is full")
		}
	}
	assert.Positive(t, drops["reno"])
}

func hystartAck(h *hystart, rtt time.Duration, round bool) bool {
	return h.observe(&Ack{RTT: rtt, Round: round})
}

// RFC 9406 §4.2: eight samples of a longer round trip start conservative slow start. Five rounds
// later slow start ends.
func TestRFC9406_Rounds(t *testing.T) {
	h := newHystart(&Config{})
	round := func(rtt time.Duration, n int) (exit bool) {
		for i := range n {
			exit = hystartAck(&h, rtt, i == n-1) || exit
		}
		return exit
	}
	round(40*time.Millisecond, 10)
	round(44*time.Millisecond, 10)
	assert.False(t, h.css, "4 ms is less than an eighth of 40")
	round(49*time.Millisecond, 7)
	assert.False(t, h.css, "seven samples are too few")
	round(49*time.Millisecond, 7)
	round(60*time.Millisecond, 8)
	assert.True(t, h.css, "an eighth of 49 ms longer")
	assert.Equal(t, 250, h.grow(1000, 1000), "a quarter as fast")
	for range cssRounds - 2 {
		assert.False(t, round(60*time.Millisecond, 8))
	}
	assert.True(t, round(60*time.Millisecond, 8), "the round in which it began counts")
}

// RFC 9406 §4.2: if the round trip shrinks again, slow start resumes: the increase was jitter.
func TestRFC9406_Resumes(t *testing.T) {
	h := newHystart(&Config{})
	for _, rtt := range []time.Duration{40e6, 50e6} {
		for i := range 8 {
			hystartAck(&h, rtt, i == 7)
		}
	}
	assert.True(t, h.css)
	for range 8 {
		hystartAck(&h, 41*time.Millisecond, false)
	}
	assert.False(t, h.css)
	assert.Equal(t, 1000, h.grow(1000, 1000))
}

// RFC 9406 §4.3: the threshold is an eighth of the round trip, between 4 and 16 ms.
func TestRFC9406_Threshold(t *testing.T) {
	for last, thresh := range map[time.Duration]time.Duration{
		time.Millisecond: 4 * time.Millisecond, 80 * time.Millisecond: 10 * time.Millisecond,
		400 * time.Millisecond: 16 * time.Millisecond,
	} {
		for _, more := range []time.Duration{-1, 0} {
			h := hystart{last: last}
			for range 8 {
				hystartAck(&h, last+thresh+more, false)
			}
			assert.Equal(t, more == 0, h.css, "%v", last)
		}
	}
}

// RFC 9406 §4.3: without pacing an acknowledgment grows the window by at most eight segments. For a
// sender of trains the limit is a train.
func TestRFC9406_Limit(t *testing.T) {
	for _, x := range []struct {
		cfg  Config
		want int
	}{
		{Config{}, 8000},
		{Config{Burst: 4}, 8000},
		{Config{Burst: 44}, 44000},
		{Config{Paced: true}, 100000},
	} {
		h := newHystart(&x.cfg)
		assert.Equal(t, x.want, h.grow(100000, 1000), "%+v", x.cfg)
	}
}

// RFC 9406 §4.3: HyStart++ runs only in the first slow start. Later ones end at ssthresh.
func TestRFC9406_OnlyTheFirstSlowStart(t *testing.T) {
	x := afterLoss(t, 1000, 50*time.Millisecond)
	assert.True(t, x.start.done)
}
