package tcp

import (
	"fmt"
	"net/netip"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/tidepool-net/tidepool/internal/clock"
)

// TestKindsOfArrival follows founding document 001's figure: the expected segment goes into the
// buffer, an early one within the window waits for the data before it, and one beyond the window is
// dropped.
func TestKindsOfArrival(t *testing.T) {
	s := opened(t, Config{Buffers: Buffers{Recv: 65535}})
	kind := func(seq uint32, n int) Arrival { return s.c.Arrival(s.peer+seq, n) }
	assert.Equal(t, ArrivalEmpty, kind(1, 0))
	assert.Equal(t, ArrivalOutside, kind(66000, 1000))
	s.send(ACK, 66000, 1, 1000)
	assert.Equal(t, uint64(1), s.h.Drops()[DropSequence])

	assert.Equal(t, ArrivalEarly, kind(1001, 1000))
	s.send(ACK, 1001, 1, 1000)
	assert.Equal(t, ArrivalOld, kind(1001, 1000))
	assert.Zero(t, s.c.Rx().Len(), "the data is kept but not readable")

	assert.Equal(t, ArrivalNext, kind(1, 1000))
	s.send(ACK, 1, 1, 1000)
	assert.Equal(t, 2000, s.read(3000), "the data is joined with the early data")
	assert.Equal(t, ArrivalOld, kind(1, 1000))
}

// ExampleConn_Arrival shows the three kinds with the numbers of document 001.
func ExampleConn_Arrival() {
	path := Path{MTU: 1400, Local: netip.AddrFrom4([4]byte{192, 168, 0, 2})}
	h, err := NewHost(Config{
		Buffers: Buffers{Recv: 65535}, Route: func(netip.Addr) Path { return path },
		Sequence: func(Tuple) uint32 { return 1000 },
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	l, _ := h.Listen(netip.MustParseAddrPort("192.168.0.2:5000"), 1)
	t := Tuple{
		LocalAddr: path.Local, RemoteAddr: netip.AddrFrom4([4]byte{192, 168, 0, 4}),
		LocalPort: 5000, RemotePort: 4323,
	}
	now := clock.Time(1)
	var c *Conn
	arrives := func(seq uint32, flags Flags, n int) {
		s := Segment{Tuple: t, Header: Header{Seq: seq, Ack: 1001, Flags: flags, Window: 65535}}
		s.Len, s.Payload = n, [][]byte{make([]byte, n)}
		if c != nil {
			fmt.Printf("SeqNo %d: %s; ", seq, c.Arrival(seq, n))
		}
		h.Input(now, &s)
		var train Train
		for h.Output(now, []int{10}, &train) {
		}
		if c != nil {
			fmt.Printf("%d bytes to read\n", c.Rx().Len())
		}
	}
	arrives(705499, SYN, 0)
	arrives(705500, ACK, 0)
	c, _ = l.Accept()
	arrives(706860, ACK, 1360)
	arrives(771500, ACK, 1360)
	arrives(705500, ACK, 1360)
	// Output:
	// SeqNo 706860: early, kept; 0 bytes to read
	// SeqNo 771500: outside the window, dropped; 0 bytes to read
	// SeqNo 705500: next; 2720 bytes to read
}
