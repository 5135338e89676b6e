package node

import (
	"context"
	"crypto/sha256"
	"fmt"
	"net/netip"
	"sync/atomic"
	"time"

	"github.com/tidepool-net/tidepool/internal/control"
	"github.com/tidepool-net/tidepool/internal/perf"
)

// RDT moves objects, and who wants them asks. So its sender is a server of objects that are all
// the same bytes, and its receiver fetches all of them, again and again.
const (
	perfObject  = 1 << 20
	perfObjects = 64
	// perfLook is how often a sender looks how far its flows are.
	perfLook = 50 * time.Millisecond
)

// perfFetch carries a stream of RDT.
type perfFetch struct {
	server *RDTServer // a sender's
	done   atomic.Int64
}

// servePerf opens the server of a stream at a UDP port; 0 has one chosen.
func (n *Node) servePerf(port uint16) (*perfFetch, error) {
	data := perfPayload(perfObject)
	digest := sha256.Sum256(data)
	objects := make([]RDTObject, perfObjects)
	for i := range objects {
		objects[i].Name, objects[i].Size = fmt.Sprint(i), perfObject
		objects[i].SHA256, objects[i].Data = digest, data
	}
	f := &perfFetch{}
	on := netip.AddrPortFrom(netip.IPv4Unspecified(), port)
	server, err := n.serveRDT(on, RDTConfig{Selective: true}, objects, func(flow RDTServed) {
		f.done.Add(flow.Bytes)
	})
	f.server = server
	return f, err
}

// offer opens what a client of RDT sends, and says where.
func (t *perfTest) offer(p *perf.Params) error {
	sends, _ := p.Ways()
	for range sends {
		f, err := t.node.servePerf(0)
		if err != nil {
			return control.Reason(err)
		}
		t.closers = append(t.closers, f.close)
		t.offers = append(t.offers, f)
		p.RDTPorts = append(p.RDTPorts, f.server.addr.Port())
	}
	return nil
}

// connectRDT makes a client's stream number i. The server's objects are at its own port, and
// from there up.
func (t *perfTest) connectRDT(s *perfStream, i int) {
	s.local = t.control.conn.local()
	if s.sender {
		s.carrier = t.offers[i]
		s.local = netip.AddrPortFrom(s.local.Addr(), t.params.RDTPorts[i])
		return
	}
	sends, _ := t.params.Ways()
	s.remote = netip.AddrPortFrom(s.remote.Addr(), s.remote.Port()+uint16(i-sends))
	s.carrier = &perfFetch{}
}

// acceptRDT makes the streams of a server of RDT, those that it receives first.
func (t *perfTest) acceptRDT(port uint16) error {
	c := t.control.conn
	sends, receives := t.params.Ways()
	for i := range sends {
		t.streams = append(t.streams, &perfStream{
			test: t, carrier: &perfFetch{}, local: c.local(),
			remote: netip.AddrPortFrom(c.peer().Addr(), t.params.RDTPorts[i]),
		})
	}
	for i := range receives {
		f, err := t.node.servePerf(port + uint16(i))
		if err != nil {
			return fmt.Errorf("UDP port %d: %w", port+uint16(i), control.Reason(err))
		}
		t.streams = append(t.streams, &perfStream{
			test: t, sender: true, carrier: f, remote: c.peer(),
			local: netip.AddrPortFrom(c.local().Addr(), port+uint16(i)),
		})
	}
	for i, s := range t.streams {
		s.id, s.socket = perf.StreamID(i), 5+i
	}
	return nil
}

// send looks how far the flows are, until the test halts.
func (f *perfFetch) send(s *perfStream) error {
	look := time.NewTicker(perfLook)
	defer look.Stop()
	for {
		select {
		case <-s.test.stop:
			return nil
		case <-look.C:
			k := f.sent()
			s.mu.Lock()
			if !s.test.halted.Load() { // or the two ends would tell different numbers
				s.moved.Store(k)
			}
			s.mu.Unlock()
		}
	}
}

// sent is what the flows have sent so far, repeats apart.
func (f *perfFetch) sent() int64 {
	n := f.done.Load()
	for _, flow := range f.server.Flows() {
		if !flow.Done && flow.Err == nil {
			packets := flow.Sender.Sent - flow.Sender.Resent
			n += min(flow.Bytes, int64(packets)*defaultRDTPayload)
		}
	}
	return n
}

// defaultRDTPayload is what a packet carries unless somebody says otherwise.
const defaultRDTPayload = 1325

// receive fetches the objects until the test halts.
func (f *perfFetch) receive(s *perfStream) error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	s.test.busy.Go(func() {
		select {
		case <-s.test.stop:
			cancel()
		case <-ctx.Done():
		}
	})
	for {
		had := int64(0)
		_, err := s.test.node.FetchRDT(ctx, s.remote, RDTFetch{
			Progress: func(bytes, _ int64) {
				s.took(int(max(0, bytes-had)))
				had = max(had, bytes)
			},
		})
		if s.test.halted.Load() {
			return nil
		}
		if err != nil {
			return control.Reason(err)
		}
	}
}

func (f *perfFetch) halt()   {}
func (f *perfFetch) finish() {}
func (f *perfFetch) close() {
	if f.server != nil {
		_ = f.server.Close() // or it is closed already
	}
}
