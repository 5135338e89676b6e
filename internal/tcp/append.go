package tcp

import "encoding/binary"

// Size returns the length of the header on the wire.
func (h *Header) Size() int { return HeaderSize + h.Options.size() }

// Put writes the header to b[:Size()] with a checksum of zero.
func (h *Header) Put(b []byte, srcPort, dstPort uint16) {
	size := h.Size()
	binary.BigEndian.PutUint16(b, srcPort)
	binary.BigEndian.PutUint16(b[2:], dstPort)
	binary.BigEndian.PutUint32(b[4:], h.Seq)
	binary.BigEndian.PutUint32(b[8:], h.Ack)
	b[12] = byte(size/4) << 4
	b[13] = byte(h.Flags)
	binary.BigEndian.PutUint16(b[14:], h.Window)
	binary.BigEndian.PutUint16(b[16:], 0)
	binary.BigEndian.PutUint16(b[18:], h.Urgent)
	if size > HeaderSize {
		h.Options.put(b[HeaderSize:size])
	}
}

// maxBlocks returns how many SACK blocks fit with the other options of the list, such as three with
// timestamps (RFC 2018 §3).
func (o *Options) maxBlocks() uint8 {
	return min(maxSACKBlocks, uint8(maxOptionBytes-o.size()-4)/8)
}

// addBlock appends a SACK block. The caller must not exceed maxBlocks.
func (o *Options) addBlock(start, end uint64) {
	o.SACK[o.SACKCount] = SACKBlock{Start: uint32(start), End: uint32(end)}
	o.SACKCount++
}

// size returns the length of the encoded list, padded to 32-bit words.
func (o *Options) size() int {
	n := 0
	if o.MSS != 0 {
		n += 4
	}
	if o.HasWindowScale {
		n += 4
	}
	if o.SACKPermitted && !o.HasTimestamps {
		n += 4
	}
	if o.HasTimestamps {
		n += 12
	}
	if o.UserTimeout != 0 {
		n += 4
	}
	if o.FileDigest {
		n += 8
	}
	if o.SACKCount > 0 {
		n += 4 + 8*int(o.SACKCount)
	}
	return n
}

// put writes the list to b, which holds size() bytes. NOPs align the options to 32-bit words (RFC
// 7323 appendix A).
func (o *Options) put(b []byte) {
	if len(b) == stampBytes && o.HasTimestamps && !o.SACKPermitted {
		binary.BigEndian.PutUint32(b, stampLead) // twelve bytes: there is no other option
		binary.BigEndian.PutUint32(b[4:], o.TSVal)
		binary.BigEndian.PutUint32(b[8:], o.TSEcr)
		return
	}
	if o.MSS != 0 {
		b[0], b[1] = optMSS, 4
		binary.BigEndian.PutUint16(b[2:], o.MSS)
		b = b[4:]
	}
	if o.HasWindowScale {
		b[0], b[1], b[2], b[3] = optNop, optWindowScale, 3, o.WindowScale
		b = b[4:]
	}
	if o.SACKPermitted && !o.HasTimestamps {
		b[0], b[1], b[2], b[3] = optNop, optNop, optSACKPermitted, 2
		b = b[4:]
	}
	if o.HasTimestamps {
		b[0], b[1] = optNop, optNop
		if o.SACKPermitted {
			b[0], b[1] = optSACKPermitted, 2
		}
		b[2], b[3] = optTimestamps, 10
		binary.BigEndian.PutUint32(b[4:], o.TSVal)
		binary.BigEndian.PutUint32(b[8:], o.TSEcr)
		b = b[12:]
	}
	if o.UserTimeout != 0 {
		b[0], b[1] = optUserTimeout, 4
		binary.BigEndian.PutUint16(b[2:], o.UserTimeout)
		b = b[4:]
	}
	if o.FileDigest {
		b[0], b[1], b[2], b[3] = optNop, optNop, optExperiment, 6
		binary.BigEndian.PutUint32(b[4:], fileDigestID)
		b = b[8:]
	}
	if o.SACKCount > 0 {
		b[0], b[1], b[2], b[3] = optNop, optNop, optSACK, 2+8*o.SACKCount
		for i, s := range o.SACK[:o.SACKCount] {
			binary.BigEndian.PutUint32(b[4+8*i:], s.Start)
			binary.BigEndian.PutUint32(b[8+8*i:], s.End)
		}
	}
}
