//go:build linux

package end

import (
	"errors"
	"net"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tidepool-net/tidepool/bench/datagram"
)

// ceiling runs one end of a transfer without a protocol: an upper bound for every protocol over the
// same link. ceiling counts only received bytes.
func (p *process) ceiling() (stop func() error, err error) {
	s, err := datagram.Open(p.spec.Sides[0].UDP, p.spec.Sides[0].Peer, datagram.ShortQueue)
	if err != nil {
		return nil, err
	}
	p.socket = s
	if p.spec.Work.Kind == "" {
		if p.spec.Stack == "raw-gso" || p.spec.Stack == "plane" {
			if err := s.Coalesce(); err != nil {
				return nil, err
			}
		}
		go p.count()
	}
	p.report(&Report{Event: "ready"})
	return s.Close, nil
}

// batchOf is the number of messages that one call receives. With segmentation offload a message is
// a run of datagrams; there are few of them, so that they fit in the cache.
var batchOf = map[string]int{"raw-plain": 1, "raw-mmsg": 64, "raw-gso": 16, "plane": 8}

// count counts received bytes from the end of the warm-up until the socket is closed.
func (p *process) count() {
	m := meter{warm: p.spec.Work.Warm, span: time.Hour}
	one, credits := &p.received, creditReporter{}
	batch := p.socket.NewBatch(batchOf[p.spec.Stack])
	for {
		list, err := batch.Receive()
		if err != nil {
			if !errors.Is(err, net.ErrClosed) {
				p.report(&Report{Event: "failed", Error: err.Error()})
			}
			return
		}
		n := 0
		for _, r := range list {
			if p.spec.Stack == "plane" {
				n += one.take(r)
				continue
			}
			n += len(r.Data)
		}
		p.tally(&m, n)
		credits.add(p.socket, n)
	}
}

func (p *process) tally(m *meter, n int) {
	m.add(n)
	p.counting.Lock()
	p.counted = Report{Bytes: m.bytes, Took: m.took, Bad: p.received.bad}
	p.counting.Unlock()
}

func (p *process) blast() (s Report, err error) {
	once := map[string]func() func() (int, error){
		"raw-plain": p.blastPlain, "raw-mmsg": p.blastMany, "raw-gso": p.blastTrains,
		"plane": p.blastPlane,
	}[p.spec.Stack]()
	c := credit{socket: p.socket, batch: p.socket.NewBatch(16)}
	before, _ := cpu()
	for start := time.Now(); s.Took < p.spec.Work.For; s.Took = time.Since(start) {
		for range 4 {
			n, err := once()
			if err != nil {
				return s, err
			}
			s.Sent += int64(n)
		}
		if err := c.spend(s.Sent); err != nil {
			return s, err
		}
	}
	after, _ := cpu()
	s.CPU = after - before
	return s, nil
}

func (p *process) blastPlain() func() (int, error) {
	piece := []unix.Iovec{datagram.Piece(make([]byte, p.spec.MTU))}
	return func() (int, error) { return p.spec.MTU, p.socket.Send(piece, p.spec.MTU, p.spec.MTU) }
}

func (p *process) blastMany() func() (int, error) {
	batch := p.socket.NewBatch(64)
	return func() (int, error) {
		n, err := batch.SendAll(p.spec.MTU)
		return n * p.spec.MTU, err
	}
}

func (p *process) blastTrains() func() (int, error) {
	total := segments(p.spec.MTU) * p.spec.MTU
	piece := []unix.Iovec{datagram.Piece(make([]byte, total))}
	return func() (int, error) { return total, p.socket.Send(piece, total, p.spec.MTU) }
}

// segments returns how many datagrams of a size the kernel accepts in one call.
func segments(size int) int { return min(datagram.MaxSegments, datagram.MaxPayload/size) }
