package tcp

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// sendUrgent delivers data with an urgent pointer.
func (s *script) sendUrgent(seq, ack uint32, n int, pointer uint16) {
	s.t.Helper()
	g := s.segment(URG|PSH|ACK, seq, ack, n, 65535)
	g.Urgent = pointer
	s.h.Input(s.now, &g)
}

func (s *script) event(c *Conn) Event {
	s.t.Helper()
	all := Event(0)
	for {
		got, _, e, ok := s.h.NextEvent()
		if !ok {
			return all
		}
		if got == c {
			all |= e
		}
	}
}

// RFC 9293 §3.8.5: urgent data is read in line. The user learns that there is urgent data and how
// much of it is unread.
func TestRFC9293_3_8_5_Urgent(t *testing.T) {
	s := opened(t, Config{})
	s.event(s.c)
	assert.Zero(t, s.c.Urgent())
	s.sendUrgent(1, 1, 10, 8)
	s.expect(ACK, 1, 11, 0)
	assert.Equal(t, Urgent|Readable, s.event(s.c))
	assert.Equal(t, 8, s.c.Urgent())
	assert.Equal(t, 5, s.read(5))
	assert.Equal(t, 3, s.c.Urgent())
	s.sendUrgent(11, 1, 10, 0)
	s.expect(ACK, 1, 21, 0)
	assert.NotZero(t, s.event(s.c)&Urgent, "the pointer is behind RCV.NXT, but not yet consumed")
	assert.Equal(t, 5, s.c.Urgent())
	assert.Equal(t, 15, s.read(100), "all data, urgent or not")
	assert.Zero(t, s.c.Urgent())
	s.sendUrgent(21, 1, 0, 0)
	assert.Zero(t, s.event(s.c)&Urgent, "all urgent data has been consumed")

	s.sendUrgent(21, 1, 10, 60000) // MUST-31: any length, most of it still to arrive
	s.expect(ACK, 1, 31, 0)
	assert.Equal(t, 60000, s.c.Urgent())
	assert.NotZero(t, s.event(s.c)&Urgent)
	s.sendUrgent(31, 1, 10, 60000)
	s.expect(ACK, 1, 41, 0)
	assert.NotZero(t, s.event(s.c)&Urgent)
	assert.Equal(t, 60010, s.c.Urgent())
	s.sendUrgent(5000, 2, 10, 100) // no urgent data with an unacceptable ACK
	assert.Equal(t, 60010, s.c.Urgent())
}

// TestEarlyBytesAreBounded checks that out-of-order data of all connections takes no more memory
// than the host allows. In-order data is always accepted.
func TestEarlyBytesAreBounded(t *testing.T) {
	s := newScript(t, Config{Limits: Limits{EarlyBytes: 20000}})
	var conns []*Conn
	for i := range uint16(4) {
		s.tuple.RemotePort = 5000 + i
		if s.l != nil {
			s.l.Close(s.now)
		}
		s.accept(fullOptions)
		conns = append(conns, s.c)
		s.send(ACK, 7001, 1, 1000)
		s.collect()
		s.out = nil
		verify(t, s.h)
	}
	assert.Equal(t, 16000, s.h.receivers.held, "two connections; the ring buffer extends from the gap on")
	assert.Equal(t, uint64(2), s.h.Drops()[DropMemory])
	assert.Zero(t, conns[3].Info().OutOfOrder)
	s.send(ACK, 1, 1, 7000)
	s.expect(ACK, 1, 7001, 0)
	s.send(ACK, 7001, 1, 1000)
	s.expect(ACK, 1, 8001, 0)
	s.tuple.RemotePort, s.c = 5000, conns[0]
	s.send(ACK, 1, 1, 7000)
	s.expect(ACK, 1, 8001, 0)
	assert.Equal(t, 8000, s.h.receivers.held)
	conns[1].Abort(s.now)
	assert.Zero(t, s.h.receivers.held)
	require.Equal(t, 3, s.h.numConns())
}

// RFC 9293 §3.10.7.3: the urgent pointer of a SYN-ACK is relative to the SYN's sequence number.
func TestRFC9293_3_10_7_3_UrgentInSynAck(t *testing.T) {
	s := newScript(t, Config{})
	s.connect()
	s.expect(SYN, 0, 0, 0)
	g := s.segment(SYN|ACK|URG|PSH, 0, 1, 10, 65535)
	g.Urgent = 5
	s.h.Input(s.now, &g)
	s.expect(ACK, 1, 11, 0)
	assert.Equal(t, 4, s.c.Urgent())
	assert.Equal(t, 10, s.c.Rx().Len())
}
