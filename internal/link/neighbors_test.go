package link

import (
	"encoding/binary"
	"net/netip"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/tidepool-net/tidepool/internal/buffer"
)

// A packet's addresses show over which of two links to one peer it arrived, in both families.
func TestLinkOfBothFamilies(t *testing.T) {
	addr := netip.MustParseAddr
	end := func(id int, local, local6, peer, peer6 string) Interface {
		return Interface{
			ID: id, Local: addr(local), Others: []netip.Addr{addr("fe80::1"), addr(local6)},
			Neighbors: []Neighbor{{
				Addr: addr(peer), Others: []netip.Addr{addr(peer6)}, Host: "127.0.0.1", Port: 9,
			}},
		}
	}
	table := newTable(Config{Interfaces: []Interface{
		end(0, "10.0.0.1", "fd00::1", "10.0.0.2", "fd00::2"),
		end(1, "10.0.1.1", "fd00:1::1", "10.0.1.2", "fd00:1::2"),
	}}.withDefaults())
	table.learn(nil)
	for _, test := range []struct {
		src, dst string
		link     int
	}{
		{"10.0.0.2", "10.9.9.9", 0},
		{"10.0.1.2", "10.9.9.9", 1},
		{"10.9.9.9", "10.0.1.1", 1},
		{"fd00::2", "fd09::9", 0},
		{"fd00:1::2", "fd09::9", 1},
		{"fd00:1::2", "fd00::1", 1}, // the source has precedence
		{"fd09::9", "fd00:1::1", 1},
		{"fd09::9", "fd00::1", 0},
		{"fd09::9", "fd09::8", 0}, // a forwarded packet: the first link that is up
	} {
		p := []byte{0x45, 19: 0}
		src, dst := addr(test.src), addr(test.dst)
		if src.Is6() {
			p = []byte{0x60, 39: 0}
		}
		copy(p[len(p)-2*src.BitLen()/8:], src.AsSlice())
		copy(p[len(p)-src.BitLen()/8:], dst.AsSlice())
		from := linkOf(table.senders(addressOf(netip.MustParseAddrPort("127.0.0.1:9"))), p)
		assert.Equal(t, test.link, from.on.ID, test)
	}
	d := &UDP{table: table}
	for hop, want := range map[string]Drop{
		"10.0.0.2": 0, "fd00::2": 0, "fd00:1::2": DropNoNeighbor, "::": DropNoNeighbor,
	} {
		_, why := d.neighborOf(&buffer.Train{Bytes: 1, NextHop: addr(hop)})
		assert.Equal(t, want, why, hop)
	}
}

// An impaired device distinguishes next hops of both families, and its memory is bounded.
func TestTagsOfNextHops(t *testing.T) {
	i := &Impaired{tags: map[netip.Addr]uint64{}}
	hops := []netip.Addr{{}}
	for _, hop := range []string{
		"10.0.0.2", "0.0.0.0", "255.255.255.255", "fd00::2", "::ffff:10.0.0.2", "fe80::1",
	} {
		hops = append(hops, netip.MustParseAddr(hop))
	}
	for range 2 {
		for _, hop := range hops {
			assert.Equal(t, hop, i.hopOf(i.tagOf(hop)))
		}
	}
	lost := 0
	for n := range 2 * maxHops {
		b := [16]byte{0xfc}
		binary.BigEndian.PutUint32(b[12:], uint32(n))
		if hop := netip.AddrFrom16(b); i.hopOf(i.tagOf(hop)) != hop {
			assert.False(t, i.hopOf(i.tagOf(hop)).IsValid())
			lost++
		}
	}
	assert.Len(t, i.hops, maxHops)
	assert.Equal(t, maxHops+4, lost, "four earlier hops already have tags")
}
