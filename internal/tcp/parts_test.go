package tcp

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/tidepool-net/tidepool/internal/buffer"
	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/tcp/recovery"
)

// TestReceiverAlone checks RFC 9293 §3.10.7.4 (first and seventh step), RFC 2018 §4 and RFC 2883 §4
// without a connection. The steps share one receiver. Sequence numbers are relative to the peer's
// SYN.
func TestReceiverAlone(t *testing.T) {
	const window = 1000
	drops := new(Drops)
	cfg, _ := Config{Buffers: Buffers{Recv: window}}.complete() // the receiver does not use the missing Route
	r := &receiver{
		shared: &receivers{cfg: &cfg, drops: drops}, rx: buffer.NewRing(window), sack: true,
		tune: autotuning{size: window, max: window}, reassembly: &reassembly{},
	}
	r.reassembly.ooo.Max = 2
	r.begin(0)
	r.windowField(false)
	r.ack.quicken()
	for _, c := range []struct {
		name                 string
		number, n            int
		acceptable, readable bool
		nxt, window          int
		blocks               []SACKBlock
		drops                Drops
	}{
		{"in order", 1, 100, true, true, 101, 900, nil, Drops{}},
		{"again", 1, 100, false, false, 101, 900, nil, Drops{}},
		{"a gap", 301, 100, true, false, 101, 900, []SACKBlock{{301, 401}}, Drops{}},
		{
			"another gap", 501, 100, true, false, 101, 900,
			[]SACKBlock{{501, 601}, {301, 401}},
			Drops{},
		},
		{
			"one gap too many", 701, 100, true, false, 101, 900,
			[]SACKBlock{{501, 601}, {301, 401}},
			Drops{DropRanges: 1},
		},
		{
			"held already", 301, 100, true, false, 101, 900,
			[]SACKBlock{{301, 401}, {301, 401}, {501, 601}},
			Drops{DropDuplicate: 1},
		},
		{"the first gap", 101, 200, true, true, 401, 600, []SACKBlock{{501, 601}}, Drops{}},
		{
			"more than fits", 401, 900, true, true, 1001, 0,
			[]SACKBlock{{501, 601}},
			Drops{DropWindow: 1},
		},
		{"a probe", 1001, 1, true, false, 1001, 0, nil, Drops{DropWindow: 1}},
		{"beyond", 1002, 1, false, false, 1001, 0, nil, Drops{}},
	} {
		s := &Segment{Count: 1, Len: c.n, Payload: [][]byte{make([]byte, c.n)}}
		seq := r.irs + uint64(c.number)
		acceptable := r.acceptable(s, seq)
		assert.Equal(t, c.acceptable, acceptable, c.name)
		if acceptable {
			assert.Equal(t, c.readable, r.text(clock.Time(1), s, seq), c.name)
			assert.Equal(t, int32(1), r.ack.owed, c.name)
		}
		assert.Equal(t, []int{c.nxt, c.window}, []int{int(r.nxt - r.irs), r.window()}, c.name)
		var o Options
		r.sackBlocks(&o, 1400)
		assert.Equal(t, c.blocks, append([]SACKBlock(nil), o.SACK[:o.SACKCount]...), c.name)
		assert.Equal(t, c.drops, *drops, c.name)
		r.ack.sent(0)
		*drops = Drops{}
	}
	assert.Equal(t, uint64(1000), r.bytes)
	assert.Zero(t, r.shared.held)
}

// TestSenderAlone checks which queued data may leave (RFC 9293 §3.8.6.2.1 and §3.7.4).
func TestSenderAlone(t *testing.T) {
	for _, c := range []struct {
		name                   string
		waiting, most, allowed int
		change                 func(*sender)
		remainder              bool
		n                      int
		why                    Limit
	}{
		{"all", 3500, 9000, 9000, nil, false, 3500, LimitNone},
		{"a train's worth", 3500, 2000, 9000, nil, false, 2000, LimitNone},
		{"the congestion window", 3500, 9000, 2500, nil, false, 2000, LimitCwnd},
		{
			"the peer's window", 3500, 9000, 9000, func(d *sender) { d.wnd = 2500 },
			false, 2000, LimitReceiver,
		},
		{
			"less than a segment", 3500, 9000, 9000, func(d *sender) { d.wnd = 500 },
			false, 0, LimitReceiver,
		},
		{
			"half of the largest window", 3500, 9000, 9000,
			func(d *sender) { d.wnd, d.maxWnd = 500, 1000 }, false, 500, LimitReceiver,
		},
		{
			"a probe uses the remainder", 3500, 9000, 9000, func(d *sender) { d.wnd = 500 },
			true, 500, LimitReceiver,
		},
		{
			"Nagle", 3500, 9000, 9000, func(d *sender) { d.smallEnd = d.Una + 1 },
			false, 3000, LimitNagle,
		},
		{
			"no delay", 3500, 9000, 9000,
			func(d *sender) { d.smallEnd, d.nagle.off = d.Una+1, true }, false, 3500, LimitNone,
		},
		{
			"the cork", 3500, 9000, 9000, func(d *sender) { d.nagle.cork = true },
			false, 3000, LimitCork,
		},
		{
			"long enough", 3500, 9000, 9000,
			func(d *sender) { d.nagle.cork, d.nagle.corkExpired = true, true },
			false, 3500, LimitNone,
		},
		{
			"the last data", 3500, 9000, 9000,
			func(d *sender) { d.nagle.cork, d.closed = true, true }, false, 3500, LimitNone,
		},
	} {
		d := &sender{Space: recovery.Space{MSS: 1000}, wnd: 8000, maxWnd: 8000}
		d.begin(7)
		d.Una = d.Nxt
		if c.change != nil {
			c.change(d)
		}
		n, why := d.fits(c.waiting, c.most, c.allowed, c.remainder)
		assert.Equal(t, c.n, n, c.name)
		assert.Equal(t, c.why, why, c.name)
	}
}
