package link

import (
	"errors"
	"math/rand/v2"
	"net/netip"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/buffer"
)

// limitedSocket is a socket that accepts a limited number of packets, and keeps them. The loopback
// interface never refuses packets.
type limitedSocket struct {
	allow  int // packets that it still accepts
	slots  int // trains that it accepts per flush; 0: no limit
	pushed []buffer.Train
	to     []*neighbor
	taken  [][]byte
	err    error
}

func (s *limitedSocket) recv() ([]datagram, error) { return nil, ErrWouldBlock }

func (s *limitedSocket) push(to *neighbor, t *buffer.Train) bool {
	if s.slots > 0 && len(s.pushed) == s.slots {
		return false
	}
	s.pushed, s.to = append(s.pushed, *t), append(s.to, to)
	return true
}

func (s *limitedSocket) flush() (int, error) {
	trains, to := s.pushed, s.to
	s.pushed, s.to = nil, nil
	if s.err != nil {
		return 0, s.err
	}
	n := 0
	for i, t := range trains {
		data := join(t.Pieces)
		for k := range t.Count {
			if s.allow == 0 {
				return n, ErrWouldBlock
			}
			s.allow--
			n++
			p := data[k*t.Size : min(len(data), (k+1)*t.Size)]
			s.taken = append(s.taken, append([]byte(nil), p...))
			to[i].sent(1, len(p))
		}
	}
	return n, nil
}

func join(pieces [][]byte) (data []byte) {
	for _, p := range pieces {
		data = append(data, p...)
	}
	return data
}

func (s *limitedSocket) info() Info               { return Info{} }
func (s *limitedSocket) counters(*SocketCounters) {}
func (s *limitedSocket) close() error             { return nil }

// over returns a device with a limitedSocket socket, and with a neighbor addrB.
func over(s *limitedSocket, cfg Config) *UDP {
	cfg.Interfaces = []Interface{{Name: "if0", MTU: 100, Neighbors: []Neighbor{
		{Addr: netip.AddrFrom4(addrB), Host: "127.0.0.1", Port: 5000},
	}}}
	return newUDP(cfg.withDefaults(), s, -1)
}

// TestBlockedSocketLosesNothing checks that each packet that the device accepted arrives once and
// in order, while a socket accepts a random part of the packets, from none to all.
func TestBlockedSocketLosesNothing(t *testing.T) {
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(8, seed))
		s := &limitedSocket{slots: r.IntN(4)}
		d := over(s, Config{QueuePackets: 1 + r.IntN(60), QueueBytes: 100 * (1 + r.IntN(50))})
		var want [][]byte
		for range 40 {
			s.allow = max(0, r.IntN(60)-20)
			var batch []buffer.Train
			for range r.IntN(6) {
				lengths := equal(1+r.IntN(15), 1+r.IntN(100), 0)
				lengths = append(lengths, 1+r.IntN(lengths[0]))
				batch = append(batch, train(r, 0, addrB, lengths...))
			}
			room := d.Room()
			n, err := d.WriteBatch(batch)
			require.NoError(t, err)
			want = append(want, packetsOf(batch[:n]...)...)
			for _, tr := range batch[:n] {
				room -= tr.Count
				for _, p := range tr.Pieces {
					clear(p) // the packet is valid only during the call
				}
			}
			if n < len(batch) {
				require.Negative(t, room-batch[n].Count, "seed %d: refused in spite of Room", seed)
			}
			require.Equal(t, len(want), len(s.taken)+d.Pending(), "seed %d", seed)
		}
		s.allow = 1 << 20
		_, err := d.WriteBatch(nil)
		require.NoError(t, err)
		require.Zero(t, d.Pending())
		require.Equal(t, want, s.taken, "seed %d", seed)
		require.EqualValues(t, len(want), d.Counters(0).TxPackets)
	}
}

func TestFullQueueRefuses(t *testing.T) {
	s := &limitedSocket{}
	d := over(s, Config{QueuePackets: 10, QueueBytes: 800})
	assert.Equal(t, 8, d.Room(), "800 bytes hold 8 packets of the MTU")
	r := rand.New(rand.NewPCG(9, 9))
	five := train(r, 0, addrB, equal(5, 100, 0)...)

	t.Log("# the first trains are queued, a train that does not fit is refused as a whole")
	n, err := d.WriteBatch([]buffer.Train{five, five})
	require.NoError(t, err)
	assert.Equal(t, 1, n)
	assert.Equal(t, 5, d.Pending())
	assert.Equal(t, 3, d.Room())
	assert.EqualValues(t, 5, d.Counters(0).Queued)
	assert.EqualValues(t, 1, d.Socket().Blocked)

	t.Log("# a smaller train still fits, and is queued")
	write(t, d, train(r, 0, addrB, 10, 10, 10, 10, 10))
	assert.Equal(t, 10, d.Pending())
	assert.Zero(t, d.Room())

	t.Log("# a train without a neighbor needs no room")
	write(t, d, train(r, 0, addrC, 10))

	t.Log("# the queue leaves first")
	s.allow = 7
	n, err = d.WriteBatch([]buffer.Train{five})
	require.NoError(t, err)
	assert.Equal(t, 1, n)
	assert.Equal(t, 8, d.Pending())
	assert.Len(t, s.taken, 7)

	t.Log("# a train beyond every limit is queued alone")
	d = over(&limitedSocket{}, Config{QueuePackets: 2, QueueBytes: 10})
	write(t, d, five)
	assert.Equal(t, 5, d.Pending())
	assert.Zero(t, d.Room())
}

func TestSocketErrorIsReturned(t *testing.T) {
	s := &limitedSocket{err: errors.New("broken")}
	d := over(s, Config{})
	tr := train(rand.New(rand.NewPCG(10, 1)), 0, addrB, 10)
	n, err := d.WriteBatch([]buffer.Train{tr})
	require.ErrorIs(t, err, s.err)
	assert.Zero(t, n)

	s.err = nil
	write(t, d, tr)
	s.err = errors.New("broken while packets wait")
	_, err = d.WriteBatch(nil)
	require.ErrorIs(t, err, s.err)
}

// TestQueueKeepsItsMemory checks that a queue that stays half full allocates nothing, and that its
// memory is bounded.
func TestQueueKeepsItsMemory(t *testing.T) {
	q := outQueue{maxPackets: 100, maxBytes: 10_000}
	to := newTable(Config{
		Interfaces: []Interface{{Neighbors: []Neighbor{{Addr: netip.AddrFrom4(addrB)}}}},
	}).neighbors[0]
	tr := train(rand.New(rand.NewPCG(11, 1)), 0, addrB, equal(10, 100, 0)...)
	round := func() {
		for q.fits(&tr) {
			q.push(to, &tr, 0)
		}
		q.pop(45)
	}
	for range 20 {
		round()
	}
	assert.Zero(t, testing.AllocsPerRun(1000, round))
	assert.LessOrEqual(t, cap(q.mem), 4*q.maxBytes)
}
