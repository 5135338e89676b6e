package link

import (
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/buffer"
)

func TestTrainsArriveInOrder(t *testing.T) {
	eachMode(t, func(t *testing.T, mode Offload) {
		trainsArrive(t, mode, "127.0.0.1", 65507)
		// RFC 8200 §3: a payload of 65,535 bytes, including UDP's header
		trainsArrive(t, mode, "::1", 65527)
	})
}

func trainsArrive(t *testing.T, mode Offload, host string, most int) {
	t.Helper()
	t.Run(host, func(t *testing.T) {
		for name, lengths := range map[string][]int{
			"one":                              {1400},
			"one byte":                         {1},
			"with a short last":                equal(20, 1400, 733),
			"of equal size":                    equal(46, 1400, 0),
			"of acks":                          equal(64, 40, 0),
			"of bytes":                         equal(30, 1, 0),
			"of odd size":                      equal(31, 977, 3),
			"longer than a call takes":         equal(200, 1400, 9),
			"of more packets than UDP_SEGMENT": equal(300, 52, 0),
			"of big packets":                   equal(3, 30000, 0),
			"the largest packet":               {most},
		} {
			t.Run(name, func(t *testing.T) {
				a, b := pairAt(t, mode, host, host)
				r := rand.New(rand.NewPCG(1, uint64(len(lengths))))
				there := train(r, 3, addrB, lengths...)
				write(t, a, there)
				assert.Equal(t, wrap(5, packetsOf(there)), receive(t, b, len(lengths)))
				back := train(r, 5, addrA, 60)
				write(t, b, back)
				assert.Equal(t, wrap(3, packetsOf(back)), receive(t, a, 1))

				tx, rx := a.Counters(3), b.Counters(5)
				assert.EqualValues(t, there.Count, tx.TxPackets)
				assert.EqualValues(t, there.Bytes, tx.TxBytes)
				assert.EqualValues(t, there.Count, rx.RxPackets)
				assert.EqualValues(t, there.Bytes, rx.RxBytes)
				assert.EqualValues(t, 1, tx.RxPackets)
				assert.Zero(t, tx.Drops)
				assert.Zero(t, rx.Drops)
				assert.Zero(t, tx.Queued)
			})
		}
	})
}

// TestBatchOfManyDestinations sends to three neighbors of one interface in turn. Each receives its
// packets in order.
func TestBatchOfManyDestinations(t *testing.T) {
	eachMode(t, func(t *testing.T, mode Offload) {
		hub := openOne(t, mode, 0)
		hops := [][4]byte{addrA, addrB, addrC}
		var spokes []*UDP
		for _, hop := range hops {
			s := openOne(t, mode, 9)
			addNeighbor(hub, 0, hop, s.Info().Local)
			addNeighbor(s, 9, [4]byte{10, 0, 0, 99}, hub.Info().Local)
			spokes = append(spokes, s)
		}
		r := rand.New(rand.NewPCG(2, 2))
		var batch []buffer.Train
		want := make([][][]byte, len(hops))
		for range 60 {
			i := r.IntN(len(hops))
			tr := train(r, 0, hops[i], equal(1+r.IntN(20), 1+r.IntN(1400), 0)...)
			batch = append(batch, tr)
			want[i] = append(want[i], packetsOf(tr)...)
		}
		write(t, hub, batch...)
		for i, s := range spokes {
			assert.Equal(t, wrap(9, want[i]), receive(t, s, len(want[i])), "spoke %d", i)
		}
	})
}

// TestForeignSenders checks that every receive path accepts datagrams from sockets without support
// for trains.
func TestForeignSenders(t *testing.T) {
	eachMode(t, func(t *testing.T, mode Offload) {
		d := openOne(t, mode, 0)
		friend, at := foreignSocket(t)
		other, _ := foreignSocket(t)
		addNeighbor(d, 0, addrB, at)
		to := net.UDPAddrFromAddrPort(d.Info().Local)
		last := []byte("the last one")
		send := func(c *net.UDPConn, p []byte) {
			_, err := c.WriteTo(p, to)
			require.NoError(t, err)
		}
		t.Log("# nothing, little, much, and more than the MTU")
		big := make([]byte, 65507)
		for _, p := range [][]byte{nil, []byte("12345"), big, last} {
			send(friend, p)
		}
		assert.Equal(t, wrap(0, [][]byte{[]byte("12345"), big, last}), receive(t, d, 3))
		c := d.Counters(0)
		assert.EqualValues(t, 1, c.Drops[DropEmpty])
		assert.EqualValues(t, 1, c.Oversize)
		assert.EqualValues(t, 3, c.RxPackets)

		t.Log("# datagrams from unknown senders are dropped")
		send(other, []byte("hello"))
		send(friend, last)
		assert.Equal(t, wrap(0, [][]byte{last}), receive(t, d, 1))
		assert.EqualValues(t, 1, d.Counters(0).Drops[DropUnknown])
		assert.EqualValues(t, 1, d.Socket().Unknown)
	})
}

// TestPlainPeerReceivesDatagrams checks that a peer without offload receives one packet per
// datagram, even if the device sends trains.
func TestPlainPeerReceivesDatagrams(t *testing.T) {
	eachMode(t, func(t *testing.T, mode Offload) {
		d := openOne(t, mode, 0)
		peer, at := foreignSocket(t)
		addNeighbor(d, 0, addrB, at)
		tr := train(rand.New(rand.NewPCG(3, 3)), 0, addrB, equal(30, 1400, 77)...)
		write(t, d, tr)
		buf := make([]byte, maxDatagram)
		for i, want := range packetsOf(tr) {
			n, err := peer.Read(buf)
			require.NoError(t, err)
			require.Equal(t, want, buf[:n], "packet %d", i)
		}
	})
}

// TestTrainsWithoutANeighbor sends trains without a neighbor between trains that have a neighbor.
func TestTrainsWithoutANeighbor(t *testing.T) {
	eachMode(t, func(t *testing.T, mode Offload) {
		a, b := pair(t, mode)
		addNeighbor(a, 3, addrC, b.Info().Local)
		// This neighbor's name has no address.
		a.table.at(3).hops[netip.AddrFrom4(addrC)].to = address{}
		r := rand.New(rand.NewPCG(5, 5))
		first, last := train(r, 3, addrB, 100), train(r, 3, addrB, 200)
		tooBig := train(r, 3, addrB, 65508)
		write(t, a, first, train(r, 3, [4]byte{1, 1, 1, 1}, 10, 10),
			train(r, 3, addrC, 10, 10, 10), tooBig, buffer.Train{Iface: 3, NextHop: netip.AddrFrom4(addrB)},
			train(r, 44, addrB, 10), last)
		assert.Equal(t, wrap(5, packetsOf(first, last)), receive(t, b, 2))
		c := a.Counters(3)
		assert.EqualValues(t, 2, c.Drops[DropNoNeighbor])
		assert.EqualValues(t, 3, c.Drops[DropUnresolved])
		assert.EqualValues(t, 1, c.Drops[DropTooBig])
		assert.EqualValues(t, 2, c.TxPackets)
		assert.Zero(t, a.Counters(44))
	})
}

// TestAbsentPeer sends to a closed port repeatedly, and checks that no call returns an error.
func TestAbsentPeer(t *testing.T) {
	eachMode(t, func(t *testing.T, mode Offload) {
		a := openOne(t, mode, 0)
		gone, at := foreignSocket(t)
		require.NoError(t, gone.Close())
		addNeighbor(a, 0, addrB, at)
		r := rand.New(rand.NewPCG(6, 6))
		for range 20 {
			write(t, a, train(r, 0, addrB, equal(3, 1400, 1)...))
			expectNothing(t, a)
		}
		assert.EqualValues(t, 80, a.Counters(0).TxPackets)
	})
}

func TestPortInUse(t *testing.T) {
	eachMode(t, func(t *testing.T, mode Offload) {
		taken := openOne(t, mode, 0).Info().Local
		cfg := Config{
			Host: "127.0.0.1", Port: taken.Port(), Offload: mode,
			Interfaces: []Interface{{Name: "if0"}},
		}
		_, err := Open(cfg)
		require.EqualError(t, err, fmt.Sprintf("link: interface if0: bind %v: "+
			"address already in use (another node running?)", taken))
		var bind *BindError
		require.ErrorAs(t, err, &bind)
		assert.ErrorIs(t, err, errAddrInUse)

		cfg.Interfaces = append(cfg.Interfaces, Interface{Name: "if1", ID: 1})
		_, err = Open(cfg)
		require.EqualError(t, err, fmt.Sprintf("link: interfaces if0, if1: bind %v: "+
			"address already in use (another node running?)", taken))
		cfg.Host = "192.0.2.1" // an address for documentation (RFC 5737 §3)
		_, err = Open(cfg)
		require.EqualError(t, err, fmt.Sprintf("link: interfaces if0, if1: bind 192.0.2.1:%d: "+
			"not an address of this machine", taken.Port()))
	})
}

func TestBadConfigs(t *testing.T) {
	one := []Interface{{Name: "if0"}}
	for name, test := range map[string]struct {
		cfg  Config
		want string
	}{
		"no interface":   {Config{}, "link: the socket has no interface"},
		"same number":    {Config{Interfaces: []Interface{{Name: "x"}, {Name: "y"}}}, "link: interfaces x and y both have number 0"},
		"bad number":     {Config{Interfaces: []Interface{{Name: "x", ID: -1}}}, "link: interface x: number -1: must be 0 to 65536"},
		"bad offload":    {Config{Interfaces: one, Offload: 9}, "link: unknown offload 9"},
		"negative queue": {Config{Interfaces: one, QueueBytes: -1}, "link: sizes and times must not be negative"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Open(test.cfg)
			require.EqualError(t, err, test.want)
		})
	}
}

func TestInfo(t *testing.T) {
	eachMode(t, func(t *testing.T, mode Offload) {
		d := openOne(t, mode, 0)
		info := d.Info()
		assert.Equal(t, mode, info.Offload)
		assert.Equal(t, mode == OffloadGSO, info.GRO)
		assert.NotZero(t, info.Local.Port())
		assert.Positive(t, info.RecvBuffer)
		assert.Equal(t, info.RecvBuffer/chargeSmall, info.RecvPackets)
		assert.Equal(t, mode == OffloadPlain, d.FD() < 0)
		assert.Positive(t, d.Room())
		assert.Zero(t, d.Pending())
	})
	for _, o := range append(modes(), OffloadAuto) {
		back, err := ParseOffload(o.String())
		require.NoError(t, err)
		assert.Equal(t, o, back)
	}
	_, err := ParseOffload("fast")
	require.EqualError(t, err, `link: offload "fast": must be auto, gso, mmsg or plain`)
}

func TestCloseEndsReading(t *testing.T) {
	eachMode(t, func(t *testing.T, mode Offload) {
		a, _ := pair(t, mode)
		require.NoError(t, a.Close())
		_, err := a.ReadBatch(make([]buffer.Frame, 1))
		require.Error(t, err)
		require.NotErrorIs(t, err, ErrWouldBlock)
	})
}

// TestSteadyStateAllocatesNothing checks both sending and receiving.
func TestSteadyStateAllocatesNothing(t *testing.T) {
	eachMode(t, func(t *testing.T, mode Offload) {
		a, b := pair(t, mode)
		r := rand.New(rand.NewPCG(7, 7))
		batch := []buffer.Train{
			train(r, 3, addrB, equal(40, 1400, 10)...), train(r, 3, addrB, 40),
		}
		frames := make([]buffer.Frame, 16)
		ready := make(chan struct{}, 1)
		b.Feed(func() {
			select {
			case ready <- struct{}{}:
			default:
			}
		})
		round := func() {
			_, _ = a.WriteBatch(batch)
			for got := 0; got < 42; {
				n, err := b.ReadBatch(frames)
				if err != nil && b.FD() < 0 {
					<-ready
				}
				for _, f := range frames[:n] {
					got += (len(f.Data) + f.Size - 1) / f.Size
				}
			}
		}
		round()
		assert.Zero(t, testing.AllocsPerRun(200, round))
	})
}

// A device at :: has neighbors of both families. It shows IPv4 addresses as such, although the
// kernel returns them in IPv4-mapped form (RFC 3493 §3.7).
func TestOneSocketForBothFamilies(t *testing.T) {
	eachMode(t, func(t *testing.T, mode Offload) {
		hub := open(t, Config{Offload: mode, Host: "::", Interfaces: []Interface{{Name: "if0"}}})
		port := hub.Info().Local.Port()
		hops := [][4]byte{addrA, addrB}
		for i, host := range []string{"127.0.0.1", "::1"} {
			s := open(t, Config{Offload: mode, Host: host, Interfaces: []Interface{{Name: "if9", ID: 9}}})
			addNeighbor(hub, 0, hops[i], s.Info().Local)
			addNeighbor(s, 9, addrC, netip.AddrPortFrom(netip.MustParseAddr(host), port))
			tr := train(rand.New(rand.NewPCG(19, 1)), 0, hops[i], equal(20, 1400, 5)...)
			write(t, hub, tr)
			assert.Equal(t, wrap(9, packetsOf(tr)), receive(t, s, 21))
			back := train(rand.New(rand.NewPCG(20, 1)), 9, addrC, equal(3, 100, 0)...)
			write(t, s, back)
			assert.Equal(t, wrap(0, packetsOf(back)), receive(t, hub, 3))
			nb := hub.Neighbors(0)[i]
			assert.Equal(t, s.Info().Local, nb.UDP)
			assert.EqualValues(t, 3, nb.Heard)
		}
	})
}

// Both ends of a link must have addresses of one family. Otherwise the kernel could not send the
// packets.
func TestNeighborsOfAnotherFamily(t *testing.T) {
	for host, other := range map[string]string{"127.0.0.1": "::1", "::1": "127.0.0.1", "": "::1"} {
		faces := []Interface{{Name: "if0", Neighbors: []Neighbor{
			{Addr: netip.AddrFrom4(addrB), Host: other, Port: 5001},
		}}}
		_, err := Open(Config{Host: host, Interfaces: faces})
		require.ErrorContains(t, err, "link: interface if0: neighbor 10.0.0.2 at "+
			netip.AddrPortFrom(netip.MustParseAddr(other), 5001).String()+": not an IPv")
		d := open(t, Config{Host: host, Interfaces: []Interface{{Name: "if0"}}})
		require.ErrorContains(t, d.Reconfigure(faces), "use one family on a link")
	}
	var b fakeResolver
	b.set(map[string]netip.Addr{"bee.example": loopback, "sea.example": netip.IPv6Loopback()})
	d := open(t, Config{
		Host: "sea.example", Lookup: b.lookup, Interfaces: []Interface{{Name: "if0", Neighbors: []Neighbor{
			{Addr: netip.AddrFrom4(addrB), Host: "bee.example", Port: 9},
			{Addr: netip.AddrFrom4(addrC), Host: "sea.example", Port: 9},
		}}},
	})
	assert.Equal(t, netip.IPv6Loopback(), d.Info().Local.Addr())
	list := d.Neighbors(0)
	require.EqualError(t, list[0].Lookup, "not an IPv6 address")
	assert.False(t, list[0].UDP.IsValid())
	assert.Equal(t, "[::1]:9", list[1].UDP.String())
}
