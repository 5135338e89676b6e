package chaos_test

import (
	"math/rand/v2"
	"time"

	"github.com/tidepool-net/tidepool/internal/ip"
	"github.com/tidepool-net/tidepool/internal/netem"
	"github.com/tidepool-net/tidepool/internal/sim"
)

// scenario is the test case that a seed determines.
type scenario struct {
	line        sim.LineConfig
	left, right sim.Bulk
	outages     []outage
	// rooms are the queue limits of the two hosts' interfaces, which slow down TCP; 0: no limit.
	rooms [2]int
}

// outage is a time in which the first link loses all packets, in one direction or both.
type outage struct {
	at, length  time.Duration
	left, right bool // directions of the outage
}

// worst is the maximum share of packets that each fault affects.
const worst = 0.3

// draw returns the scenario of a seed, over IPv4 or IPv6.
func draw(seed uint64, ipv6 bool) *scenario {
	r := rand.New(rand.NewPCG(seed, 0x6368616f73))
	s := &scenario{line: sim.LineConfig{IPv6: ipv6}}
	s.line.Left, s.line.Right = drawTCP(r, 2*seed), drawTCP(r, 2*seed+1)
	if r.IntN(4) == 0 {
		s.line.Routers = 1 + r.IntN(2)
	}
	for range s.line.Routers + 1 {
		s.line.Links = append(s.line.Links, drawWire(r, s.line.Routers+1))
	}
	// Corruption on two links can cancel out, and no checksum detects that. So only one link
	// corrupts packets.
	corrupting := r.IntN(len(s.line.Links))
	for i := range s.line.Links {
		w := &s.line.Links[i]
		if i != corrupting {
			w.AB.Corrupt.Share, w.BA.Corrupt.Share = 0, 0
		}
		if ipv6 { // IPv6 has no smaller MTU (RFC 8200 §5)
			w.MTU = max(w.MTU, ip.MinMTU6)
		}
	}
	most := 100_000
	for _, b := range []int{
		s.line.Left.Buffers.Recv, s.line.Left.Buffers.Send,
		s.line.Right.Buffers.Recv, s.line.Right.Buffers.Send, 10 * s.line.Links[0].MTU,
	} {
		if b <= 1000 {
			most = min(most, 100*b)
		}
	}
	s.left, s.right = drawBulk(r, most), drawBulk(r, most)
	s.left.SendAt, s.right.SendAt = r.Uint64()>>8, r.Uint64()>>8
	s.left.RecvAt, s.right.RecvAt = s.right.SendAt, s.left.SendAt
	for i := range s.rooms {
		s.rooms[i] = max(0, r.IntN(40)-20)
	}
	for range max(0, r.IntN(8)-5) {
		s.outages = append(s.outages, drawOutage(r))
	}
	return s
}

func drawOutage(r *rand.Rand) outage {
	short := time.Duration(1+r.IntN(1000)) * time.Millisecond
	o := outage{at: short, length: time.Duration(1 + r.Int64N(int64(short)))}
	if r.IntN(4) == 0 {
		o.length *= 500 // longer than the timeouts of some connections
	}
	which := 1 + r.IntN(3)
	o.left, o.right = which&1 != 0, which&2 != 0
	return o
}

// drawBulk draws an application: how much it transfers, how fast, and how it ends.
func drawBulk(r *rand.Rand, most int) sim.Bulk {
	b := sim.Bulk{}
	switch r.IntN(5) {
	case 0:
		b.Send = uint64(r.IntN(20))
	case 1, 2:
		b.Send = uint64(r.IntN(min(most, 8000)))
	default:
		b.Send = uint64(r.IntN(most))
	}
	if r.IntN(2) == 0 {
		b.MaxWrite = 1 + r.IntN(5000)
	}
	if r.IntN(2) == 0 {
		b.MaxRead = 1 + r.IntN(5000)
	}
	if r.IntN(2) == 0 {
		b.MaxPause = time.Duration(1+r.IntN(20_000)) * time.Microsecond
		b.Lazy = r.Float64() * 0.8
	}
	if r.IntN(4) == 0 {
		b.Leave = sim.Leave(1 + r.IntN(4))
		b.After = uint64(r.IntN(most))
	}
	return b
}

// drawWire draws a link, one of several in a row. Its directions differ.
func drawWire(r *rand.Rand, wires int) sim.LinkConfig {
	w := sim.LinkConfig{MTU: []int{100, 296, 576, 1400, 1400, 1500, 9000, 65_535}[r.IntN(8)]}
	w.AB, w.BA = drawLink(r, wires), drawLink(r, wires)
	return w
}

func drawLink(r *rand.Rand, wires int) netem.Config {
	c := netem.Config{Delay: time.Duration(1 + r.Int64N(int64(50*time.Millisecond)))}
	if r.IntN(2) == 0 {
		c.Delay /= 100
	}
	switch r.IntN(3) {
	case 0:
		c.Jitter = netem.UniformJitter(c.Delay)
		c.Overtaking = r.IntN(2) == 0
	case 1:
		c.Jitter = netem.NormalJitter(c.Delay / 4)
		c.Overtaking = r.IntN(2) == 0
	}
	if r.IntN(3) == 0 {
		c.Rate = netem.BitsPerSecond(50_000 << r.IntN(14))
		c.Queue = netem.DropTail{Packets: 2 + r.IntN(100)}
	}
	most := 0.0
	switch r.IntN(4) {
	case 0: // the link has no faults
	case 1:
		most = 0.03
	case 2:
		most = worst / 3
	case 3:
		most = worst
	}
	drawFaults(r, &c, most/float64(wires))
	return c
}

// drawFaults draws the share of packets that each fault affects, up to most. Some links have all
// faults at the full share.
func drawFaults(r *rand.Rand, c *netem.Config, most float64) {
	share := func() float64 {
		if r.IntN(3) == 0 {
			return 0
		}
		return r.Float64() * most
	}
	if r.IntN(10) == 0 {
		share = func() float64 { return most }
	}
	switch loss := share(); r.IntN(3) {
	case 0:
		if loss > 0 {
			c.Loss = netem.Bursts(loss, 1+float64(r.Float64()*4))
		}
	default:
		c.Loss = netem.UniformLoss(loss)
	}
	c.Duplicate, c.Truncate = share(), share()
	c.Corrupt = netem.Corrupt{
		Share: share(), Bits: 1 + r.IntN(4), Where: netem.Region(r.IntN(3)),
	}
	c.Reorder = netem.Reorder{Share: share()}
	if r.IntN(2) == 0 {
		c.Reorder.Late = 1 + 2*c.Delay
	}
}
