package ip_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/ip"
)

// Incomplete datagrams use no more than the memory limit, and the oldest is evicted first.
func TestOldestDatagramIsEvicted(t *testing.T) {
	const limit = 256 << 10
	r := reassembler(t, ip.ReassemblyConfig{MaxBytes: limit})
	body := text(4000)
	var gone []ip.Discard
	for i := range 1000 {
		from := uint8(i % 7) // enough sources that none uses half
		_, reason := put(t, r, start+1, piece(uint32(i), body, 0, 2000, source(from)))
		require.Equal(t, ip.DropNone, reason)
		require.LessOrEqual(t, r.Info().Bytes, limit)
		gone = append(gone, discards(r)...)
	}
	info := r.Info()
	assert.Equal(t, limit/(5<<10), info.Datagrams, "each with a page")
	assert.Equal(t, uint64(1000-info.Datagrams), info.Evicted)
	assert.Len(t, gone, 1000-info.Datagrams)
	assert.Equal(t, ip.Discard{Reason: ip.DropFragmentEvicted, Count: 1}, gone[0])

	whole, _ := put(t, r, start+1, piece(999, body, 2000, 4000, source(999%7)))
	assert.Equal(t, body, whole[20:], "the newest datagram is complete")
	whole, _ = put(t, r, start+1, piece(0, body, 2000, 4000, source(0)))
	assert.Nil(t, whole, "the oldest datagram was evicted")
}

// A datagram that grows is never evicted for its own new fragment, even if it is the oldest.
func TestGrowingDatagramIsNotEvicted(t *testing.T) {
	r := reassembler(t, ip.ReassemblyConfig{MaxBytes: 256 << 10})
	body := text(4000)
	put(t, r, start, piece(0, body, 0, 2000, source(0)))
	for i := uint32(1); r.Info().Bytes+5<<10 <= 256<<10; i++ {
		put(t, r, start, piece(i, body, 0, 2000, source(uint8(i%7))))
	}
	require.Zero(t, r.Info().Evicted)
	whole, _ := put(t, r, start, piece(0, body, 2000, 4000, source(0)))
	assert.Equal(t, body, whole[20:])
	assert.Equal(t, uint64(1), r.Info().Evicted)
	whole, _ = put(t, r, start, piece(1, body, 2000, 4000, source(1)))
	assert.Nil(t, whole, "the next oldest datagram was evicted")
}

func TestDatagramsAndFragmentsAreCounted(t *testing.T) {
	r := reassembler(t, ip.ReassemblyConfig{MaxDatagrams: 10, MaxFragments: 4})
	body := text(400)
	for i := range 100 {
		put(t, r, start, piece(uint32(i), body, 0, 8, source(uint8(i))))
		require.LessOrEqual(t, r.Info().Datagrams, 10)
	}
	discards(r)
	for i := range 4 {
		_, reason := put(t, r, start, piece(500, body, 16*i, 16*i+8))
		require.Equal(t, ip.DropNone, reason)
	}
	discards(r)
	_, reason := put(t, r, start, piece(500, body, 80, 88))
	assert.Equal(t, ip.DropFragmentCount, reason)
	assert.Equal(t, []ip.Discard{{Reason: ip.DropFragmentCount, Count: 4}}, discards(r))
}

// A source that floods the node with first fragments evicts its own datagrams, not those of others.
func TestFloodingSourceEvictsItsOwnDatagrams(t *testing.T) {
	body := text(65000)
	for _, size := range []int{8, 1400, 60_000} {
		r := reassembler(t, ip.ReassemblyConfig{})
		put(t, r, start, piece(1, body, 0, 32, source(77)))
		for i := range 20_000 {
			put(t, r, start, piece(uint32(i), body, 0, size, source(66)))
			discards(r)
		}
		assert.Less(t, r.Info().Bytes, 3<<20, "size %d", size)
		whole, _ := put(t, r, start, piece(1, body, 32, 65000, source(77)))
		assert.NotNil(t, whole, "size %d", size)
	}
}

// A fragment of eight bytes at the end of a long datagram uses one page.
func TestSmallFragmentUsesOnePage(t *testing.T) {
	r := reassembler(t, ip.ReassemblyConfig{})
	body := text(65000)
	put(t, r, start, piece(1, body, 64992, 65000))
	assert.LessOrEqual(t, r.Info().Bytes, 5<<10)
	put(t, r, start, piece(1, body, 0, 64992))
	assert.Zero(t, r.Info().Bytes)
	assert.Equal(t, uint64(1), r.Info().Whole)
}

// feed delivers fragments with parsed headers.
type feed struct {
	headers []ip.Header
	packets [][]byte
}

func feedOf(tb testing.TB, packets [][]byte) feed {
	tb.Helper()
	f := feed{packets: packets}
	for _, b := range packets {
		h, _ := header(tb, b)
		f.headers = append(f.headers, h)
	}
	return f
}

func (f *feed) into(r *ip.Reassembler, id uint32) (whole int) {
	for i := range f.packets {
		f.headers[i].ID = id
		b, _ := r.Input(start, 0, &f.headers[i], f.packets[i])
		whole += len(b)
	}
	for _, ok := r.Output(); ok; _, ok = r.Output() {
		continue
	}
	return whole
}

func TestReassemblyAllocatesNothing(t *testing.T) {
	r := reassembler(t, ip.ReassemblyConfig{})
	whole, part := feedOf(t, cut(datagram(60_000), 1400)), feedOf(t, cut(datagram(60_000), 1400)[:7])
	id := uint32(0)
	turn := func() { // each iteration completes one datagram and leaves one incomplete
		id++
		whole.into(r, id)
		part.into(r, ^id)
	}
	for range 2000 {
		turn()
	}
	assert.Zero(t, testing.AllocsPerRun(5000, turn))
	assert.NotZero(t, r.Info().Evicted)
}

// BenchmarkReassembly measures reassembly: one copy of each fragment and one of the datagram.
func BenchmarkReassembly(b *testing.B) {
	for _, mtu := range []int{1400, 576, 68} {
		for _, order := range []string{"in-order", "shuffled"} {
			b.Run(fmt.Sprintf("mtu=%d/%s", mtu, order), func(b *testing.B) {
				pieces := cut(datagram(60_000), mtu)
				if order == "shuffled" {
					rand.New(rand.NewPCG(1, 1)).Shuffle(len(pieces), func(i, j int) {
						pieces[i], pieces[j] = pieces[j], pieces[i]
					})
				}
				f, r := feedOf(b, pieces), reassembler(b, ip.ReassemblyConfig{})
				b.SetBytes(60_000)
				b.ReportAllocs()
				id := uint32(0)
				for b.Loop() {
					id++
					if f.into(r, id) != 60_020 {
						b.Fatal("not whole")
					}
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/
					float64(len(pieces)), "ns/fragment")
			})
		}
	}
}

// BenchmarkReassemblyFlood measures first fragments of datagrams that are never completed. Each
// comes from another source and evicts an older one.
func BenchmarkReassemblyFlood(b *testing.B) {
	f, r := feedOf(b, [][]byte{piece(1, text(4000), 0, 1384)}), reassembler(b, ip.ReassemblyConfig{})
	b.ReportAllocs()
	id := uint32(0)
	for b.Loop() {
		id++
		f.headers[0].Src = ip.V4(10, 7, byte(id>>8), byte(id))
		f.into(r, id)
	}
	if r.Info().Bytes > 4<<20 {
		b.Fatal(r.Info())
	}
}

// BenchmarkFragment measures fragmentation, with headers and checksums.
func BenchmarkFragment(b *testing.B) {
	for _, tt := range []struct{ size, mtu int }{{1380, 576}, {65515, 1400}, {65515, 68}} {
		b.Run(fmt.Sprintf("%d-for-%d", tt.size+20, tt.mtu), func(b *testing.B) {
			packet := datagram(tt.size)
			var f ip.Fragmenter
			var out [ip.MaxHeaderLen]byte
			b.SetBytes(int64(len(packet)))
			b.ReportAllocs()
			n := 0
			for b.Loop() {
				f.Reset(packet, tt.mtu, 0)
				for f.More() {
					f.Next(out[:f.HeaderLen()])
					n++
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(n), "ns/fragment")
		})
	}
}
