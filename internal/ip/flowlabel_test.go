package ip_test

import (
	"net/netip"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/ip"
)

// RFC 6437 §2 and §3: the packets of a flow have the same label of 20 bits. Other flows and secrets
// have other labels. Labels are evenly distributed and never 0.
func TestRFC6437_3_FlowLabels(t *testing.T) {
	labels, others := ip.NewFlowLabels([16]byte{1}), ip.NewFlowLabels([16]byte{2})
	dst := netip.AddrPortFrom(dst6, 443)
	seen, same := map[uint32]int{}, 0
	var bits [20]int
	for port := range 65536 {
		src := netip.AddrPortFrom(src6, uint16(port))
		label := labels.Of(src, dst, ip.ProtoTCP)
		require.Equal(t, label, labels.Of(src, dst, ip.ProtoTCP))
		require.Less(t, label, uint32(1<<20))
		require.NotZero(t, label)
		seen[label]++
		for i := range bits {
			bits[i] += int(label >> i & 1)
		}
		if label == others.Of(src, dst, ip.ProtoTCP) || label == labels.Of(dst, src, ip.ProtoTCP) ||
			label == labels.Of(src, dst, ip.ProtoUDP) {
			same++
		}
	}
	assert.Greater(t, len(seen), 63_000, "65,536 of 1,048,576 labels have about 2,000 repetitions")
	for i, n := range bits {
		assert.InDelta(t, 32768, n, 600, "bit %d", i)
	}
	assert.Less(t, same, 5)
	zero := labels.Of(netip.AddrPortFrom(src6, 53016), netip.AddrPortFrom(dst6, 45), ip.ProtoUDP)
	assert.Equal(t, uint32(1), zero, "the hash of this flow is 0")
}

// The label depends on each bit of both addresses.
func TestFlowLabelsDependOnBothAddresses(t *testing.T) {
	labels := ip.NewFlowLabels([16]byte{1})
	label := func(src, dst [16]byte) uint32 {
		return labels.Of(netip.AddrPortFrom(netip.AddrFrom16(src), 1),
			netip.AddrPortFrom(netip.AddrFrom16(dst), 2), ip.ProtoUDP)
	}
	src, dst := src6.As16(), dst6.As16()
	seen := map[uint32]bool{label(src, dst): true}
	for bit := range 128 {
		for _, a := range []*[16]byte{&src, &dst} {
			a[bit/8] ^= 1 << (bit % 8)
			seen[label(src, dst)] = true
			a[bit/8] ^= 1 << (bit % 8)
		}
	}
	assert.Len(t, seen, 257)
	assert.Zero(t, testing.AllocsPerRun(100, func() { label(src, dst) }))
}
