package link

import (
	"errors"
	"net"
	"net/netip"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/buffer"
)

// script is a source that returns the reads that the test sends it.
type script struct {
	next chan scriptRead
}

type scriptRead struct {
	data []byte
	from netip.AddrPort
	err  error
}

func (s *script) ReadFromUDPAddrPort(b []byte) (int, netip.AddrPort, error) {
	r, ok := <-s.next
	if !ok {
		return 0, netip.AddrPort{}, net.ErrClosed
	}
	return copy(b, r.data), r.from, r.err
}

var (
	fromA = netip.MustParseAddrPort("127.0.0.1:1000")
	fromB = netip.MustParseAddrPort("127.0.0.1:2000")
)

// TestInboxJoins checks that the inbox joins datagrams that could have been one train.
func TestInboxJoins(t *testing.T) {
	b := newInbox()
	go b.fill(&script{next: feedScript(
		scriptRead{data: []byte("aaaa"), from: fromA},
		scriptRead{data: []byte("bbbb"), from: fromA},
		scriptRead{data: []byte("cc"), from: fromA},   // a short datagram ends the train
		scriptRead{data: []byte("dd"), from: fromA},   // begins a train
		scriptRead{data: []byte("ee"), from: fromB},   // comes from another sender
		scriptRead{data: []byte("ffff"), from: fromB}, // longer than the previous datagram
		scriptRead{data: nil, from: fromB},            // an empty datagram
		scriptRead{data: []byte("g"), from: fromB},
	)})
	<-b.done
	got, err := b.take()
	require.NoError(t, err)
	a, z := addressOf(fromA), addressOf(fromB)
	assert.Equal(t, []datagram{
		{[]byte("aaaabbbbcc"), 4, a, false},
		{[]byte("dd"), 2, a, false},
		{[]byte("ee"), 2, z, false},
		{[]byte("ffff"), 4, z, false},
		{[]byte{}, 0, z, false},
		{[]byte("g"), 1, z, false},
	}, got)
	_, err = b.take()
	require.ErrorIs(t, err, ErrWouldBlock)
}

func feedScript(reads ...scriptRead) chan scriptRead {
	next := make(chan scriptRead, len(reads))
	for _, r := range reads {
		next <- r
	}
	close(next)
	return next
}

// TestInboxIsBounded checks that a full inbox makes the reader wait for the owner, and loses
// nothing.
func TestInboxIsBounded(t *testing.T) {
	const datagrams = 3 * inboxDatagrams
	b := newInbox()
	s := &script{next: make(chan scriptRead)}
	go b.fill(s)
	go func() {
		for i := range datagrams {
			s.next <- scriptRead{data: make([]byte, 1+i%2*1000), from: fromA}
		}
		close(s.next)
	}()
	got := 0
	eventually(t, func() bool {
		list, err := b.take()
		if err == nil {
			assert.LessOrEqual(t, len(list), inboxDatagrams)
			bytes := 0
			for _, g := range list {
				got += (len(g.data) + g.size - 1) / g.size
				bytes += len(g.data)
			}
			assert.LessOrEqual(t, bytes, inboxBytes)
		}
		return got >= datagrams
	}, "all datagrams arrive")
	assert.Equal(t, datagrams, got)
	<-b.done
}

// TestInboxSignalsTheOwner checks that the inbox signals the owner once for datagrams that arrive
// while it is empty.
func TestInboxSignalsTheOwner(t *testing.T) {
	b := newInbox()
	told, from := 0, addressOf(fromA)
	b.add([]byte("x"), from)
	b.feed(func() { told++ })
	assert.Equal(t, 1, told, "at once")
	b.add([]byte("y"), from)
	assert.Equal(t, 1, told)
	_, err := b.take()
	require.NoError(t, err)
	b.add([]byte("z"), from)
	assert.Equal(t, 2, told)
}

// TestInboxSurvivesErrors checks that the reader counts the network's errors and continues, and
// that a closed socket ends it.
func TestInboxSurvivesErrors(t *testing.T) {
	b := newInbox()
	go b.fill(&script{next: feedScript(
		scriptRead{err: &net.OpError{Op: "read", Err: errRefused}},
		scriptRead{err: errors.New("odd")},
		scriptRead{data: []byte("x"), from: fromA},
	)})
	<-b.done
	var c SocketCounters
	b.counters(&c)
	assert.Equal(t, SocketCounters{Reads: 1, ReadErrors: 1, Absent: 1}, c)
}

// The inbox can be closed while its reader waits for room.
func TestInboxCloses(t *testing.T) {
	b := newInbox()
	s := &script{next: make(chan scriptRead, 64)}
	for range 64 {
		s.next <- scriptRead{data: make([]byte, inboxBytes/32), from: fromA}
	}
	go b.fill(s)
	eventually(t, func() bool { return len(s.next) < 64-30 }, "the inbox is full")
	b.close()
	_, err := b.take()
	require.NoError(t, err, "datagrams in the inbox can still be read")
	_, err = b.take()
	require.ErrorIs(t, err, net.ErrClosed)
}

// If the owner assumes after a short batch that nothing is left, the device signals it again for
// datagrams that arrived meanwhile.
func TestInboxSignalsAfterAShortBatch(t *testing.T) {
	sock := &plainSocket{inbox: newInbox()}
	d := newUDP(Config{Interfaces: []Interface{{Neighbors: []Neighbor{
		{Host: fromA.Addr().String(), Port: fromA.Port()},
		{Host: fromB.Addr().String(), Port: fromB.Port()},
	}}}}.withDefaults(), sock, -1)
	told := 0
	d.Feed(func() { told++ })
	add := func(from ...netip.AddrPort) {
		for _, a := range from {
			require.True(t, sock.inbox.add([]byte("x"), addressOf(a)))
		}
	}
	read := func() int {
		n, err := d.ReadBatch(make([]buffer.Frame, 2))
		require.NoError(t, err)
		return n
	}
	add(fromA, fromB, fromA)
	assert.Equal(t, 2, read())
	add(fromB)
	assert.Equal(t, 2, told, "for the first datagram, and for the first after take")
	assert.Equal(t, 1, read())
	assert.Equal(t, 3, told)
	assert.Equal(t, 1, read())
	assert.Equal(t, 3, told)
}
