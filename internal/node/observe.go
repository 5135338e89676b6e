package node

import (
	"context"
	"encoding/binary"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/tidepool-net/tidepool/internal/capture"
	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/control"
	"github.com/tidepool-net/tidepool/internal/ip"
	"github.com/tidepool-net/tidepool/internal/stack"
	"github.com/tidepool-net/tidepool/internal/tcp"
)

// Bounds of what observers may cost.
const (
	maxObservers = 64
	// maxPile and maxPileBytes bound what one may fall behind; what comes while its pile is full
	// is counted and not kept.
	maxPile      = 1 << 15
	maxPileBytes = 16 << 20
	// keptPileBytes is how much memory an idle pile keeps.
	keptPileBytes = 1 << 20
)

// observing is who is shown packets. The loop's.
type observing struct {
	flights
	observers []*observer
	lastID    int
	files     map[int]*capturing // those of StartCapture
	pcap      *capturing         // that of PcapStart; nil: none
	header    [capture.HeaderBytes]byte
	facts     capture.Facts
}

// observer is somebody who is shown packets: a capture or a trace. The loop piles up copies, which
// at the end of its turn go where a goroutine of the observer's own takes them: so the loop never
// waits, and what is lost on the way out of a turn is known before anybody sees the packet.
type observer struct {
	about   control.Capturing
	iface   int // or allFaces, or ownFace
	known   int // how many interfaces there were when it began
	filter  *capture.Filter
	snaplen int
	limit   uint64 // packets after which it ends; 0: none
	glances bool   // it wants to know of connections
	patient bool   // the loop waits for it, because time waits for the loop: a Clock's
	flow    *traceFlow
	shown   uint64        // the loop's
	turn    pile          // this turn's; the loop's
	ended   chan struct{} // closed, by the loop, when it is shown no more

	mu     sync.Mutex
	pile   pile
	missed uint64      // in all
	faces  []faceCount // of each interface, and of the node itself, by their number
	ready  chan struct{}
	room   sync.Cond // for who is waited for
	left   bool      // it takes nothing any more
}

type faceCount struct{ packets, missed uint64 }

// pile is packets that wait for their observer.
type pile struct {
	list []sight
	data []byte
	gap  uint64 // missed since the last of the list
}

// sight is one packet as an observer was shown it.
type sight struct {
	at         clock.Time
	iface      int
	out, known bool // known: sid and glance are those of its connection
	reason     ip.DropReason
	why        string // it was dropped beneath the stack
	late       bool   // that was after it had been shown as one that lives
	length     int    // on the wire
	begin, end int    // in the pile's data
	missed     uint64 // between the one before and this
	sid        int
	glance     tcp.Glance
}

// dropped is why a packet went no further; empty: it did.
func (s *sight) dropped() string {
	if s.why == "" && s.reason != ip.DropNone {
		return s.reason.String()
	}
	return s.why
}

// observe has an observer shown packets from now on. The loop's.
func (n *Node) observe(o *observer) error {
	if len(n.observers) >= maxObservers {
		return fmt.Errorf("%d at once: %w", maxObservers, control.ErrCapturing)
	}
	o.ready, o.ended = make(chan struct{}, 1), make(chan struct{})
	o.room.L = &o.mu
	if o.faces == nil {
		o.known = len(n.cfg.LNX.Interfaces)
		o.faces = make([]faceCount, o.known+1)
	}
	o.about.Since = n.wall(n.now())
	n.observers = append(n.observers, o)
	n.retap()
	return nil
}

// observed reports whether packets have to be shown to anybody, or kept. The loop's.
func (r *observing) observed() bool { return len(r.observers) > 0 || r.recorded > 0 }

// sees reports whether an observer looks at an interface.
func (o *observer) sees(i int) bool { return o.iface == allFaces || o.iface == i }

// number is what an interface is counted and written under: behind those that there were when the
// observer began comes the node itself, and then those that are new.
func (o *observer) number(i int) int {
	if i < o.known {
		return i
	}
	return i + 1
}

// unobserve shows an observer nothing more. The loop's.
func (n *Node) unobserve(o *observer) {
	i := slices.Index(n.observers, o)
	if i < 0 {
		return
	}
	n.observers = slices.Delete(n.observers, i, i+1)
	o.settle()
	close(o.ended)
	n.retap()
}

// exhibit shows a packet to all who look. The loop's.
func (n *Node) exhibit(now clock.Time, s sight, pieces [][]byte) {
	header := pieces[0]
	s.at = now
	for _, p := range pieces {
		s.length += len(p)
	}
	if len(header) < len(n.header) && len(pieces) > 1 {
		header = n.header[:0]
		for _, p := range pieces {
			header = append(header, p[:min(len(p), len(n.header)-len(header))]...)
		}
	}
	f := &n.facts
	f.Iface, f.Out, f.Length = n.faceName(s.iface), s.out, s.length
	f.Dropped = s.dropped() != ""
	f.Look(header)
	asked := n.recorded > 0
	if asked {
		n.fly(f, &s, header)
	}
	for i := 0; i < len(n.observers); i++ {
		o := n.observers[i]
		if !o.sees(s.iface) || !n.wants(o, f, &s) {
			continue
		}
		if o.glances && !asked {
			asked = true
			n.glance(f, &s)
		}
		if o.put(&s, header, pieces) {
			n.unobserve(o)
			i--
		}
	}
}

// faceName is an interface's name; what the node sends to itself crosses lo.
func (n *Node) faceName(i int) string {
	if list := n.asIs().Interfaces; i < len(list) {
		return list[i].Name
	}
	return selfFace
}

const selfFace = "lo"

// Interfaces of an observer that are no interface's number.
const (
	allFaces = -1
	ownFace  = -2 // lo
)

// wants reports whether a packet is for an observer.
func (n *Node) wants(o *observer, f *capture.Facts, s *sight) bool {
	if o.flow != nil {
		return n.follows(o, f, s)
	}
	return o.filter.Match(f)
}

// glance looks at the connection that a segment is for; nil: it is none of an application's.
func (n *Node) glance(f *capture.Facts, s *sight) *Conn {
	k, ok := f.Flow(s.out)
	if !ok {
		return nil
	}
	t := tcp.Tuple{LocalPort: k.LocalPort, RemotePort: k.RemotePort}
	binary.BigEndian.PutUint32(t.LocalAddr[:], k.Local)
	binary.BigEndian.PutUint32(t.RemoteAddr[:], k.Remote)
	c := n.stack.TCP().Find(t)
	if c == nil {
		return nil
	}
	s.known, s.sid, s.glance = true, -1, c.Glance()
	own, ok := c.Owner.(*Conn)
	if ok {
		s.sid = own.sid
	}
	return own
}

// full reports whether a pile has no room for so many bytes more.
func (p *pile) full(bytes int) bool {
	return len(p.list) >= maxPile || len(p.data)+bytes > maxPileBytes
}

// fullWith reports whether a pile has packets and no room for those of another.
func (p *pile) fullWith(other *pile) bool {
	return len(p.list) > 0 && (len(p.list)+len(other.list) > maxPile ||
		len(p.data)+len(other.data) > maxPileBytes)
}

// put piles up a packet, as far as there is room; true: it is the last. The header are its first
// bytes, whole. The loop's.
func (o *observer) put(s *sight, header []byte, pieces [][]byte) (last bool) {
	keep := s.length
	if o.snaplen > 0 {
		keep = min(keep, o.snaplen)
	}
	p := &o.turn
	if p.full(keep) {
		o.settle()
		p = &o.turn
	}
	one := *s
	one.begin = len(p.data)
	if keep <= len(header) {
		p.data = append(p.data, header[:keep]...)
	} else {
		for _, piece := range pieces {
			p.data = append(p.data, piece[:min(len(piece), one.begin+keep-len(p.data))]...)
		}
	}
	one.end = len(p.data)
	p.list = append(p.list, one)
	o.shown++
	return o.limit > 0 && o.shown >= o.limit
}

// settle moves a turn's packets to where they are taken, as far as there is room. The loop's.
func (o *observer) settle() {
	if len(o.turn.list) == 0 {
		return
	}
	o.mu.Lock()
	for o.patient && !o.left && o.pile.fullWith(&o.turn) {
		o.room.Wait()
	}
	if len(o.pile.list) == 0 {
		o.turn.list[0].missed += o.pile.gap
		o.pile.gap = 0
		for i := range o.turn.list {
			o.face(&o.turn.list[i]).packets++
		}
		o.pile, o.turn = o.turn, o.pile
	} else {
		o.join()
	}
	o.mu.Unlock()
	o.turn = o.turn.empty()
	wake(o.ready)
}

// join appends a turn's packets to the pile. The caller has the lock.
func (o *observer) join() {
	p := &o.pile
	for i := range o.turn.list {
		one := o.turn.list[i]
		o.face(&one).packets++
		if p.full(one.end - one.begin) {
			o.face(&one).missed++
			o.missed++
			p.gap += 1 + one.missed
			continue
		}
		one.missed, p.gap = one.missed+p.gap, 0
		data := o.turn.data[one.begin:one.end]
		one.begin = len(p.data)
		p.data = append(p.data, data...)
		one.end = len(p.data)
		p.list = append(p.list, one)
	}
}

func (o *observer) face(s *sight) *faceCount {
	i := o.number(s.iface)
	for len(o.faces) <= i {
		o.faces = append(o.faces, faceCount{})
	}
	return &o.faces[i]
}

// settleSights has what was seen in this turn be taken. The loop's.
func (n *Node) settleSights() {
	for _, o := range n.observers {
		o.settle()
	}
}

// empty is a pile without its packets, and without more memory than it may keep.
func (p *pile) empty() pile {
	if cap(p.data) > keptPileBytes && len(p.data) < keptPileBytes/2 {
		return pile{list: p.list[:0]}
	}
	return pile{list: p.list[:0], data: p.data[:0]}
}

// take gives the observer what is piled up, for a pile that it is done with.
func (o *observer) take(done *pile) pile {
	next := done.empty()
	o.mu.Lock()
	defer o.mu.Unlock()
	got := o.pile
	next.gap = got.gap // it is of the next packet
	o.pile = next
	o.room.Signal()
	return got
}

// leave has the loop wait no more.
func (o *observer) leave() {
	o.mu.Lock()
	o.left = true
	o.mu.Unlock()
	o.room.Signal()
}

// counts are what the observer was shown, by interface.
func (o *observer) counts() (faces []faceCount, missed uint64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Clone(o.faces), o.missed
}

// watch gives f what the observer is shown until the observer or ctx or the node ends, or f fails.
// It lets the observer go.
func (o *observer) watch(ctx context.Context, n *Node, f func(*pile) error) (err error) {
	var p pile
	for over := false; !over && err == nil; {
		select {
		case <-o.ready:
		case <-o.ended:
			over = true
		case <-ctx.Done():
			over = true
		case <-n.stopped:
			over = true
		}
		if over {
			n.letGo(o)
		}
		p = o.take(&p)
		if len(p.list) > 0 {
			err = f(&p)
		}
	}
	o.leave()
	n.letGo(o)
	return err
}

// letGo is unobserve for whoever is not the loop.
func (n *Node) letGo(o *observer) {
	_ = n.call(func(clock.Time) { n.unobserve(o) }) // a node that is closed shows nothing
}

// captures lists who looks. The loop's.
func (n *Node) captures() []control.Capturing {
	list := []control.Capturing{}
	for _, o := range n.observers {
		about := o.about
		_, about.Missed = o.counts()
		about.Packets = o.shown
		list = append(list, about)
	}
	return list
}

// stateOf is what a capture's comment says of a connection.
func (s *sight) stateOf() string {
	if !s.known {
		return ""
	}
	g := &s.glance
	text := ""
	if g.Cwnd > 0 {
		text = fmt.Sprintf("cwnd=%d ", inSegments(g.Cwnd, g.MSS))
	}
	if g.Ssthresh > 0 {
		text += fmt.Sprintf("ssthresh=%d ", inSegments(g.Ssthresh, g.MSS))
	}
	text += "state=" + stack.StateName(g.State) + " ca=" + g.Recovery
	if g.RTT > 0 {
		text += fmt.Sprintf(" rtt=%.3fms", float64(g.RTT)/float64(time.Millisecond))
	}
	if s.sid >= 0 {
		text += fmt.Sprintf(" sid=%d", s.sid)
	}
	return text
}

// inSegments is a number of bytes in segments, as ss counts windows.
func inSegments(bytes, mss int) int {
	if mss <= 0 {
		return bytes
	}
	return bytes / mss
}
