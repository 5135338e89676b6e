package ip

import (
	"crypto/sha256"
	"encoding/binary"
	"math/bits"
	"net/netip"
)

// FlowLabels chooses the flow labels of the node's own IPv6 packets. All packets of a flow have the
// same label. Labels are evenly distributed, and an observer cannot predict a flow's label from
// those of other flows (RFC 6437 §3).
type FlowLabels struct{ keys [4]uint64 }

// NewFlowLabels returns FlowLabels with a secret key.
func NewFlowLabels(secret [16]byte) *FlowLabels {
	key := sha256.Sum256(append(secret[:], 'l'))
	f := &FlowLabels{}
	for i := range f.keys {
		f.keys[i] = binary.BigEndian.Uint64(key[8*i:])
	}
	return f
}

// Of returns the label of a flow. It is never 0, which means no label (RFC 6437 §2). The ports are
// 0 if the protocol has none.
func (f *FlowLabels) Of(src, dst netip.AddrPort, protocol uint8) uint32 {
	a, b := src.Addr().As16(), dst.Addr().As16()
	ports := uint64(src.Port())<<32 | uint64(dst.Port())<<16 | uint64(protocol)
	h := f.mix(ports, f.keys[3])
	for i := 0; i < len(a); i += 8 {
		h = f.mix(binary.BigEndian.Uint64(a[i:])+h, binary.BigEndian.Uint64(b[i:]))
	}
	label := uint32(h>>32) & flowLabelMask
	return max(label, 1)
}

// mix combines two numbers with the keys, multiplies them, and joins the halves of the product.
func (f *FlowLabels) mix(x, y uint64) uint64 {
	hi, lo := bits.Mul64(x^f.keys[0], y^f.keys[1])
	return hi ^ lo ^ f.keys[2]
}
