package iperf

import (
	"context"
	"crypto/sha256"
	"fmt"
	"net/netip"
	"sync/atomic"
	"time"

	"github.com/tidepool-net/tidepool/internal/control"
	"github.com/tidepool-net/tidepool/internal/rdt"
	"github.com/tidepool-net/tidepool/internal/services"
)

// RDT moves objects that a client requests. So the sender is a server whose objects have the same
// content, and the receiver fetches them repeatedly.
const (
	objectSize  = 1 << 20
	objectCount = 64
	// checkEvery is the interval at which a sender checks the progress of its flows.
	checkEvery = 50 * time.Millisecond
)

// rdtTransport is the transport of a stream of RDT.
type rdtTransport struct {
	server *services.RDTServer // server of the stream; set at a sender
	done   atomic.Int64
}

// serveObjects opens the server of a stream at a UDP port; 0: any free port.
func (h *Host) serveObjects(port uint16) (*rdtTransport, error) {
	data := payload(objectSize)
	digest := sha256.Sum256(data)
	objects := make([]rdt.Object, objectCount)
	for i := range objects {
		objects[i].Name, objects[i].Size = fmt.Sprint(i), objectSize
		objects[i].SHA256, objects[i].Data = digest, data
	}
	f := &rdtTransport{}
	on := h.node.AllAddrs(port)
	server, err := services.ServeRDT(h.node, on, rdt.Config{Selective: true}, objects,
		func(flow rdt.Flow) {
			f.done.Add(flow.Bytes)
		})
	f.server = server
	return f, err
}

func (t *test) offer(p *Params) error {
	sends, _ := p.StreamCounts()
	for range sends {
		f, err := t.host.serveObjects(0)
		if err != nil {
			return control.Reason(err)
		}
		t.closers = append(t.closers, f.close)
		t.offers = append(t.offers, f)
		p.RDTPorts = append(p.RDTPorts, portOf(f.server.Addr()).Port())
	}
	return nil
}

// connectRDT opens stream number i of a client. The server's objects are at the server's own port
// and the ports above it.
func (t *test) connectRDT(s *stream, i int) {
	s.local = t.control.conn.Local()
	if s.sender {
		s.transport = t.offers[i]
		s.local = netip.AddrPortFrom(s.local.Addr(), t.group.params.RDTPorts[i])
		return
	}
	sends, _ := t.group.params.StreamCounts()
	s.remote = netip.AddrPortFrom(s.remote.Addr(), s.remote.Port()+uint16(i-sends))
	s.transport = &rdtTransport{}
}

// acceptRDT opens the streams of a server of RDT, first those that it receives.
func (t *test) acceptRDT(port uint16) error {
	c := t.control.conn
	sends, receives := t.group.params.StreamCounts()
	for i := range sends {
		t.streams = append(t.streams, &stream{
			test: t, transport: &rdtTransport{}, local: c.Local(),
			remote: netip.AddrPortFrom(c.Remote().Addr(), t.group.params.RDTPorts[i]),
		})
	}
	for i := range receives {
		f, err := t.host.serveObjects(port + uint16(i))
		if err != nil {
			return fmt.Errorf("UDP port %d: %w", port+uint16(i), control.Reason(err))
		}
		t.streams = append(t.streams, &stream{
			test: t, sender: true, transport: f, remote: c.Remote(),
			local: netip.AddrPortFrom(c.Local().Addr(), port+uint16(i)),
		})
	}
	for i, s := range t.streams {
		s.id, s.socket = StreamID(i), 5+i
	}
	return nil
}

// send checks the progress of the flows until the test halts.
func (f *rdtTransport) send(s *stream) error {
	ticker := time.NewTicker(checkEvery)
	defer ticker.Stop()
	for {
		select {
		case <-s.test.group.stop:
			return nil
		case <-ticker.C:
			k := f.sent()
			s.mu.Lock()
			// After the end, the two ends would count different numbers.
			if !s.test.group.halted.Load() {
				s.moved.Store(k)
			}
			s.mu.Unlock()
		}
	}
}

// sent returns the bytes that the flows have sent so far, without retransmissions.
func (f *rdtTransport) sent() int64 {
	n := f.done.Load()
	for _, flow := range f.server.Flows() {
		if !flow.Done && flow.Err == nil {
			packets := flow.Sender.Sent - flow.Sender.Resent
			n += min(flow.Bytes, int64(packets)*defaultRDTPayload)
		}
	}
	return n
}

// defaultRDTPayload is the default payload of a packet in bytes.
const defaultRDTPayload = 1325

func (f *rdtTransport) receive(s *stream) error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	s.test.group.busy.Go(func() {
		select {
		case <-s.test.group.stop:
			cancel()
		case <-ctx.Done():
		}
	})
	for {
		had := int64(0)
		_, err := services.FetchRDT(ctx, s.test.host.node, s.remote, services.RDTFetch{
			Progress: func(bytes, _ int64) {
				s.received(int(max(0, bytes-had)))
				had = max(had, bytes)
			},
		})
		if s.test.group.halted.Load() {
			return nil
		}
		if err != nil {
			return control.Reason(err)
		}
	}
}

func (f *rdtTransport) halt()   {}
func (f *rdtTransport) finish() {}
func (f *rdtTransport) close() {
	if f.server != nil {
		_ = f.server.Close() // may be closed already
	}
}
