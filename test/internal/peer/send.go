package peer

// send fills in the fields that all segments share and sends the segment.
func (h *Host) send(s Segment) {
	if h.loses() {
		return
	}
	s.SrcPort, s.DstPort = h.port, h.nodePort
	if s.Flags&SYN == 0 || !h.quirks.SynWindow0 {
		s.Window = h.window()
	}
	h.wire.SendPacket(Packet{
		TTL: 16, Proto: ProtoTCP, Src: h.addr, Dst: h.remote, Payload: s.Bytes(h.addr, h.remote),
	})
}

func (h *Host) sendSYN() {
	if h.state == synSent {
		h.send(Segment{Seq: h.iss, Flags: SYN})
		return
	}
	h.send(Segment{Seq: h.iss, Ack: h.rcv, Flags: SYN | ACK})
}

func (h *Host) sendData(seq uint32, n int) {
	from := seq - h.iss - 1
	h.send(Segment{Seq: seq, Ack: h.rcv, Flags: ACK, Payload: h.out[from : int(from)+n]})
}

func (h *Host) acknowledge() { h.send(Segment{Seq: h.next, Ack: h.rcv, Flags: ACK}) }

// sendFIN sends the FIN after all data, in the form that the peer's quirks require.
func (h *Host) sendFIN() {
	fin := Segment{Seq: h.next - 1, Ack: h.rcv, Flags: FIN | ACK}
	if h.quirks.BareFIN {
		fin.Flags, fin.Ack = FIN, 0
	}
	h.send(fin)
	for ; h.quirks.RepeatFIN > 0; h.quirks.RepeatFIN-- {
		h.send(fin)
	}
	for n := h.quirks.AckStorm; n > 0 && !h.stormed; n-- {
		h.acknowledge()
	}
	h.stormed = true
}
