package netem

import (
	"math/rand/v2"
	"time"

	"github.com/tidepool-net/tidepool/internal/buffer"
	"github.com/tidepool-net/tidepool/internal/clock"
)

// Link is one direction of a link. It must be called by one goroutine at a time.
type Link struct {
	cfg      Config
	plain    bool // the wire only delays packets, all by the same time
	store    store
	counters Counters

	policer *tokenBucket // policer; nil: no policer
	queue   Queue
	server  Server // server; nil: no rate
	turns   Turns  // the server, if it implements Turns
	serving *Packet
	done    clock.Time // when the packet that is being sent will have left
	turn    clock.Time // when an idle server takes the waiting packet

	loss   LossFunc // loss model; nil: no loss
	faults faults
	wire   wire
	last   clock.Time // latest arrival of a packet that is not reordered

	watch             func(*Event) // watcher of events; nil: no watcher
	event             Event        // event that watch receives
	reportedAt        clock.Time   // time of the last reported event
	depth             depth        // the queue's length; up to date only while watch is set
	dropped           Packet       // last packet that was dropped on arrival, kept for watch
	cause             Reason
	wantOpportunities bool
	// reporter reports opportunities; nil: the server has none, or the watcher does not want them.
	reporter          reporter
	reportOpportunity func(at clock.Time, bytes int)
}

// faults decide about each packet. Each fault has its own random stream.
type faults struct {
	duplicate, corrupt, truncate, reorder, jitter bernoulli

	drawn  time.Duration // jitter of the last packet
	inTurn int           // number of packets since the last reordered one

	modified bool // a packet was corrupted or truncated
}

// New returns an empty, idle link. It calls stream for each part's random source, with the name of
// the part: see Streams.
func New(cfg Config, stream func(part string) *rand.Rand) (*Link, error) {
	return new(Pool).New(cfg, stream)
}

// New is like the function New, but uses memory that the links of the pool share.
func (l *Pool) New(cfg Config, stream func(part string) *rand.Rand) (*Link, error) {
	return newLink(cfg, stream, l)
}

func newLink(cfg Config, stream func(part string) *rand.Rand, memory *Pool) (*Link, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	l := &Link{store: store{pool: memory}}
	l.configure(cfg, stream)
	return l, nil
}

// configure creates the parts that a valid cfg describes.
func (l *Link) configure(cfg Config, stream func(part string) *rand.Rand) {
	l.cfg, l.loss, l.server, l.turns, l.queue, l.policer = cfg, nil, nil, nil, nil, nil
	of := func(part string, share, same float64) bernoulli {
		return bernoulli{random: stream(part), share: share, same: same}
	}
	l.faults = faults{
		duplicate: of("duplicate", cfg.Duplicate, cfg.Correlation.Duplicate),
		corrupt:   of("corrupt", cfg.Corrupt.Share, cfg.Correlation.Corrupt),
		truncate:  of("truncate", cfg.Truncate, 0),
		jitter:    of("jitter", 1, cfg.Correlation.Jitter),
		reorder:   of("reorder", cfg.Reorder.Share, cfg.Correlation.Reorder),
		modified:  l.faults.modified,
	}
	l.plain = cfg.Duplicate == 0 && cfg.Corrupt.Share == 0 && cfg.Truncate == 0 &&
		cfg.Jitter == nil && cfg.Reorder.Share == 0 && !cfg.Overtaking
	if cfg.Loss != nil {
		l.loss = cfg.Loss.Start(cfg.Origin, stream("loss"))
	}
	if cfg.Policer != nil {
		l.policer = cfg.Policer.start()
	}
	if cfg.Rate == nil {
		return
	}
	l.server = cfg.Rate.Start(cfg.Origin, stream("rate"))
	l.turns, _ = l.server.(Turns)
	discipline := cfg.Queue
	if discipline == nil {
		discipline = DropTail{}
	}
	l.queue = discipline.Start(Site{
		Drop: l.dropQueued, Mark: l.mark, Random: stream("queue"),
		Rate: cfg.Rate.MeanRate(), Overhead: cfg.Overhead, Framing: framing(cfg.Rate),
	})
	l.watchOpportunities(l.wantOpportunities)
}

// Input passes to the link a packet, in pieces, that arrived at now. Output returns the tag with
// the packet.
func (l *Link) Input(now clock.Time, tag uint64, pieces [][]byte) {
	size := 0
	for _, p := range pieces {
		size += len(p)
	}
	p, _ := l.enter(now, tag, size, nil)
	if p == nil {
		return
	}
	at := 0
	for _, piece := range pieces {
		at += copy(p.data[at:], piece)
	}
	l.admit(now, p)
}

// InputTrain passes to the link each packet of a train that arrived at now. If another link of the
// pool has lent the packets, l takes over their memory without a copy.
func (l *Link) InputTrain(now clock.Time, tag uint64, t *buffer.Train) {
	for k, left := 0, t.Bytes; left > 0; {
		size := min(t.Size, left)
		left -= size
		p, adopted := l.enter(now, tag, size, t.Pieces[k])
		for at := 0; at < size; k++ {
			if p != nil && !adopted {
				copy(p.data[at:], t.Pieces[k])
			}
			at += len(t.Pieces[k])
		}
		if p != nil {
			l.admit(now, p)
		}
	}
}

// enter counts a packet and returns memory for it. If the first piece is the whole packet and
// another link has lent it, enter returns that memory (adopted). It returns nil if the packet is
// dropped and the link has no watcher.
func (l *Link) enter(now clock.Time, tag uint64, size int, piece []byte) (p *Packet, adopted bool) {
	l.Advance(now)
	l.counters.In++
	l.counters.InBytes += uint64(size)
	if !l.fits(size) {
		l.counters.Overflowed++
		return l.dropBuffer(now, Limit, tag, size), false
	}
	if l.policer != nil && !l.policer.passes(now, size) && !l.policer.Mark {
		l.counters.Policed++
		return l.dropBuffer(now, Excess, tag, size), false
	}
	if l.server == nil && l.loses(now, size) {
		return l.dropBuffer(now, Model, tag, size), false
	}
	if len(piece) == size && l.store.pool.lender != nil {
		p = l.store.adopt(piece)
	}
	if adopted = p != nil; !adopted {
		p = l.store.take(size)
	}
	p.tag, p.entered = tag, now
	return p, adopted
}

func (l *Link) fits(size int) bool {
	return l.store.packets < l.cfg.MaxPackets && l.store.bytes+size <= l.cfg.MaxBytes
}

func (l *Link) loses(now clock.Time, size int) bool {
	if l.loss == nil || !l.loss(now, size) {
		return false
	}
	l.counters.Lost++
	return true
}

// admit sends a packet whose bytes are in place, unless it was dropped or the policer drops it.
func (l *Link) admit(now clock.Time, p *Packet) {
	if p == &l.dropped {
		l.emitDropped(now)
		return
	}
	if l.watch != nil {
		l.emit(now, Arrive, 0, p)
	}
	if l.policer != nil && l.policer.excess && !l.mark(now, p) {
		l.counters.Policed++
		l.discard(now, p, Excess)
		return
	}
	l.send(now, p)
}

// send queues p for the server. Without a server, it puts p on the wire immediately.
func (l *Link) send(now clock.Time, p *Packet) {
	if l.server == nil {
		l.depart(now, p)
		return
	}
	l.queue.Put(now, p)
	switch {
	case l.serving != nil:
	case l.turns == nil:
		l.serve(now)
	case l.turn == clock.Never:
		l.turn = l.turns.Turn(now, false)
	}
}

func (l *Link) serve(now clock.Time) {
	p := l.queue.Take(now)
	l.serving = p
	if p == nil {
		return
	}
	if l.watch != nil {
		l.emit(now, Serve, 0, p)
	}
	l.done = l.server.Finish(now, len(p.data)+l.cfg.Overhead)
}

func (l *Link) dropQueued(now clock.Time, p *Packet, why Reason) {
	l.counters.QueueDropped++
	if why == Early {
		l.counters.Early++
	}
	l.discard(now, p, why)
}

func (l *Link) discard(now clock.Time, p *Packet, why Reason) {
	if l.watch != nil {
		l.emit(now, Drop, why, p)
	}
	l.store.give(p)
}

func (l *Link) mark(now clock.Time, p *Packet) bool {
	if !markECN(p.data) {
		return false
	}
	l.counters.Marked++
	if l.watch != nil {
		l.emit(now, Mark, 0, p)
	}
	return true
}

// Advance makes packets leave the server, up to the time now. Each event has its own time, however
// late Advance is called.
func (l *Link) Advance(now clock.Time) {
	l.store.reclaim()
	if l.turns != nil {
		l.advanceTurns(now)
		return
	}
	for l.serving != nil && l.done.Due(now) {
		p, at := l.serving, l.done
		l.depart(at, p)
		l.serve(at)
	}
}

// advanceTurns is like Advance, for a server that implements Turns.
func (l *Link) advanceTurns(now clock.Time) {
	for {
		switch {
		case l.serving != nil && l.done.Due(now):
			p, at := l.serving, l.done
			l.reportUntil(at)
			l.serving = nil
			l.depart(at, p)
			l.turn = clock.Never
			if n, _ := l.queue.Len(); n > 0 {
				l.turn = l.turns.Turn(at, true)
			}
		case l.serving == nil && l.turn.Due(now):
			at := l.turn
			l.reportUntil(at)
			l.turn = clock.Never
			l.serve(at)
		default:
			l.reportUntil(now)
			return
		}
	}
}

// depart ends the transmission of a packet. The loss model may drop the packet now.
func (l *Link) depart(at clock.Time, p *Packet) {
	if l.watch != nil {
		l.emit(at, Depart, 0, p)
	}
	if l.server != nil && l.loses(at, len(p.data)) {
		l.discard(at, p, Model)
		return
	}
	l.propagate(at, p)
}

// propagate puts a packet that is not lost, and perhaps a duplicate, on the wire.
func (l *Link) propagate(now clock.Time, p *Packet) {
	if l.plain {
		p.at = max(now.Add(l.cfg.Delay), l.last)
		l.last = p.at
		if p.at > p.entered {
			l.counters.Delayed++
		}
		l.wire.add(p)
		return
	}
	var twin *Packet
	if l.faults.duplicate.draw() && l.fits(len(p.data)) {
		l.counters.Duplicated++
		twin = l.store.take(len(p.data))
		copy(twin.data, p.data)
		twin.tag, twin.entered = p.tag, p.entered
	}
	l.putOnWire(now, p)
	if twin != nil {
		l.putOnWire(now, twin)
	}
}

// putOnWire puts a packet on the wire, and may corrupt or truncate it.
func (l *Link) putOnWire(now clock.Time, p *Packet) {
	if l.faults.corrupt.draw() && len(p.data) > 0 {
		l.counters.Corrupted++
		l.faults.modified = true
		l.cfg.Corrupt.corrupt(l.faults.corrupt.random, p.data)
	}
	if l.faults.truncate.draw() && len(p.data) > 1 {
		l.counters.Truncated++
		l.faults.modified = true
		n := cut(l.faults.truncate.random, len(p.data))
		l.store.bytes -= len(p.data) - n
		p.data = p.data[:n]
	}
	p.at = l.arrival(now)
	if p.at > p.entered {
		l.counters.Delayed++
	}
	l.wire.add(p)
}

// arrival draws the arrival time of a packet that leaves at now.
func (l *Link) arrival(now clock.Time) clock.Time {
	delay := l.cfg.Delay
	if l.cfg.Jitter != nil {
		delay = max(0, delay+l.drawJitter(now))
	}
	at := now.Add(delay)
	if l.reorders() {
		l.counters.Reordered++
		if l.cfg.Reorder.Late == 0 {
			return now
		}
		late := l.faults.reorder.random.Int64N(int64(l.cfg.Reorder.Late))
		return at + 1 + clock.Time(late)
	}
	if !l.cfg.Overtaking {
		at = max(at, l.last)
		l.last = at
	}
	return at
}

// drawJitter draws a packet's jitter. If jitter is correlated, it sometimes repeats the last
// packet's.
func (l *Link) drawJitter(now clock.Time) time.Duration {
	j := &l.faults.jitter
	if j.same == 0 || !j.begun || j.random.Float64() >= j.same {
		j.begun = true
		l.faults.drawn = l.cfg.Jitter.Draw(now.Sub(l.cfg.Origin), j.random)
	}
	return l.faults.drawn
}

// reorders decides whether a packet is reordered. Packets that Gap excludes use no random draw.
func (l *Link) reorders() bool {
	if l.faults.inTurn++; l.faults.inTurn < l.cfg.Reorder.Gap || !l.faults.reorder.draw() {
		return false
	}
	l.faults.inTurn = 0
	return true
}

// Output returns the next packet that has arrived by now, with its tag; ok is false if there is no
// such packet. The packet is valid until the next Input or Advance.
func (l *Link) Output(now clock.Time) (data []byte, tag uint64, ok bool) {
	p := l.wire.take(now)
	if p == nil {
		return nil, 0, false
	}
	l.counters.Out++
	l.counters.OutBytes += uint64(len(p.data))
	l.store.lend(p)
	return p.data, p.tag, true
}

// Deadline returns the earliest time at which a packet can arrive, or never. At that time the owner
// calls Advance and Output.
func (l *Link) Deadline() clock.Time {
	t, next := l.wire.first(), l.Departure()
	if next == clock.Never {
		return t
	}
	// The packet that is being sent still has to cross the wire; queued packets arrive after it.
	return clock.Earliest(t, next.Add(l.least()))
}

// least returns a lower bound of the wire's delay.
func (l *Link) least() time.Duration {
	if l.cfg.Jitter != nil || l.cfg.Reorder.Share > 0 {
		return 0
	}
	return l.cfg.Delay
}

// Intact reports whether no packet was corrupted or truncated so far: each left the link as it
// arrived, except for congestion marks.
func (l *Link) Intact() bool { return !l.faults.modified }

// Inside returns how many packets are in the link, and their bytes.
func (l *Link) Inside() (packets, bytes int) { return l.store.packets, l.store.bytes }

// Queued returns how many packets wait for the server, and their bytes.
func (l *Link) Queued() (packets, bytes int) {
	if l.queue == nil {
		return 0, 0
	}
	return l.queue.Len()
}

// Departure returns when the packet that is being sent leaves, or when a server with turns takes
// the next one; never if the server is idle or sends no more packets.
func (l *Link) Departure() clock.Time {
	if l.serving == nil {
		return l.turn
	}
	return l.done
}

// Counters returns the counters.
func (l *Link) Counters() Counters { return l.counters }
