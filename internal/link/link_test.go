package link

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/buffer"
)

// patience is far longer than any step of these tests.
const patience = 10 * time.Second

// modes returns the offload modes that this system supports.
func modes() []Offload {
	if runtime.GOOS == "linux" {
		return []Offload{OffloadGSO, OffloadMMsg, OffloadPlain}
	}
	return []Offload{OffloadPlain}
}

func eachMode(t *testing.T, test func(t *testing.T, mode Offload)) {
	t.Helper()
	for _, mode := range modes() {
		t.Run(mode.String(), func(t *testing.T) { test(t, mode) })
	}
}

var (
	addrA = [4]byte{10, 0, 0, 1}
	addrB = [4]byte{10, 0, 0, 2}
	addrC = [4]byte{10, 0, 0, 3}
)

func open(tb testing.TB, cfg Config) *UDP {
	tb.Helper()
	if cfg.Host == "" {
		cfg.Host = "127.0.0.1"
	}
	d, err := Open(cfg)
	require.NoError(tb, err)
	tb.Cleanup(func() { _ = d.Close() }) // some tests close it themselves
	return d
}

// openOne opens a device with one interface and no neighbors.
func openOne(tb testing.TB, mode Offload, id int) *UDP {
	tb.Helper()
	return open(tb, Config{
		Offload: mode, Interfaces: []Interface{{Name: fmt.Sprintf("if%d", id), ID: id}},
	})
}

// addNeighbor adds a neighbor to an open device. The system chooses the ports, so a test can do
// this only after opening both devices.
func addNeighbor(d *UDP, id int, addr [4]byte, at netip.AddrPort) {
	f := d.table.at(id)
	n := &neighbor{
		Neighbor: Neighbor{Addr: netip.AddrFrom4(addr), Host: at.Addr().String(), Port: at.Port()}, on: f,
	}
	f.hops[netip.AddrFrom4(addr)] = n
	d.table.neighbors = append(d.table.neighbors, n)
	d.table.learn(nil)
}

// pair opens two devices that are neighbors: a is interface 3 with addrA, and b is interface 5 with
// addrB.
func pair(tb testing.TB, mode Offload) (a, b *UDP) {
	tb.Helper()
	return pairAt(tb, mode, "127.0.0.1", "127.0.0.1")
}

// pairAt is like pair, for devices with the given UDP addresses.
func pairAt(tb testing.TB, mode Offload, hostA, hostB string) (a, b *UDP) {
	tb.Helper()
	a = open(tb, Config{Offload: mode, Host: hostA, Interfaces: []Interface{{Name: "if3", ID: 3}}})
	b = open(tb, Config{Offload: mode, Host: hostB, Interfaces: []Interface{{Name: "if5", ID: 5}}})
	addNeighbor(a, 3, addrB, b.Info().Local)
	addNeighbor(b, 5, addrA, a.Info().Local)
	return a, b
}

// train returns a train of packets of the given lengths. Each packet has random bytes and several
// pieces.
func train(r *rand.Rand, iface int, hop [4]byte, lengths ...int) buffer.Train {
	t := buffer.Train{Size: lengths[0], Count: len(lengths), Iface: iface, NextHop: netip.AddrFrom4(hop)}
	for _, n := range lengths {
		p := make([]byte, n)
		for i := range p {
			p[i] = byte(r.Uint32())
		}
		t.Bytes += n
		head := min(n, 40)
		t.Pieces = append(t.Pieces, p[:head])
		if head < n {
			cut := head + r.IntN(n-head)
			for _, piece := range [][]byte{p[head:cut], p[cut:]} {
				if len(piece) > 0 {
					t.Pieces = append(t.Pieces, piece)
				}
			}
		}
	}
	return t
}

// equal returns a list of count times size, followed by last unless last is 0.
func equal(count, size, last int) []int {
	var l []int
	for range count {
		l = append(l, size)
	}
	if last > 0 {
		l = append(l, last)
	}
	return l
}

// packetsOf returns the packets of trains, in order.
func packetsOf(trains ...buffer.Train) [][]byte {
	var list [][]byte
	for i := range trains {
		for k := range trains[i].Count {
			list = append(list, bytes.Join(trains[i].Packet(k), nil))
		}
	}
	return list
}

// cut returns the packets of a frame.
func cut(f buffer.Frame) [][]byte {
	var list [][]byte
	for data := f.Data; len(data) > 0; {
		n := min(f.Size, len(data))
		list = append(list, bytes.Clone(data[:n]))
		data = data[n:]
	}
	return list
}

// received is a packet and the interface that it arrived on.
type received struct {
	iface  int
	packet []byte
}

// receive reads until it has want packets. It sets Checked in the frames before each read, as
// another device of the node may have done. A UDP device must clear it.
func receive(tb testing.TB, d Device, want int) []received {
	tb.Helper()
	frames := make([]buffer.Frame, 4)
	var got []received
	_, udp := d.(*UDP)
	for deadline := time.Now().Add(patience); len(got) < want; {
		for i := range frames {
			frames[i].Checked = true
		}
		n, err := d.ReadBatch(frames)
		if errors.Is(err, ErrWouldBlock) {
			require.True(tb, time.Now().Before(deadline), "%d of %d packets arrived", len(got),
				want)
			runtime.Gosched()
			continue
		}
		require.NoError(tb, err)
		for _, f := range frames[:n] {
			require.False(tb, udp && f.Checked, "a datagram's transport checksum is not verified")
			for _, p := range cut(f) {
				got = append(got, received{f.Iface, p})
			}
		}
	}
	return got
}

// expectNothing reads once and expects no packet. The caller must have received a later packet, so
// any earlier one would have arrived.
func expectNothing(tb testing.TB, d Device) {
	tb.Helper()
	_, err := d.ReadBatch(make([]buffer.Frame, 4))
	require.ErrorIs(tb, err, ErrWouldBlock)
}

// eventually waits until ok returns true.
func eventually(tb testing.TB, ok func() bool, what string) {
	tb.Helper()
	for deadline := time.Now().Add(patience); !ok(); runtime.Gosched() {
		require.True(tb, time.Now().Before(deadline), what)
	}
}

// write sends trains. The device must accept all of them.
func write(tb testing.TB, d Device, trains ...buffer.Train) {
	tb.Helper()
	n, err := d.WriteBatch(trains)
	require.NoError(tb, err)
	require.Equal(tb, len(trains), n, "trains taken")
}

// wrap converts packets to the form that receive returns.
func wrap(iface int, packets [][]byte) []received {
	var list []received
	for _, p := range packets {
		list = append(list, received{iface, p})
	}
	return list
}

// foreignSocket opens a plain UDP socket without support for trains.
func foreignSocket(tb testing.TB) (*net.UDPConn, netip.AddrPort) {
	tb.Helper()
	c, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	require.NoError(tb, err)
	tb.Cleanup(func() { _ = c.Close() })
	return c, c.LocalAddr().(*net.UDPAddr).AddrPort()
}
