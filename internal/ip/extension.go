package ip

import "encoding/binary"

// Limits against packets that cost more to process than they are worth (RFC 8504 §5.3).
const (
	mostOptions    = 8   // options in one header, without padding
	mostPadding    = 7   // consecutive bytes of padding; no alignment needs more
	mostExtensions = 8   // extension headers in one packet
	mostChainLen   = 256 // bytes of all extension headers in one packet
)

// These are the types of known options (RFC 8200 §4.2, RFC 2711 §2.1, RFC 2675 §2).
const (
	optionPad1  = 0
	optionPadN  = 1
	optionAlert = 5
	optionJumbo = 0xc2
)

// These are the codes of ICMPv6 parameter problems (RFC 4443 §3.4, RFC 8200 §4.5).
const (
	ProblemField  uint8 = 0 // erroneous header field
	ProblemNext   uint8 = 1 // unrecognized next header
	ProblemOption uint8 = 2 // unrecognized option; the only code that may answer multicast
	ProblemChain  uint8 = 3 // the first fragment lacks a part of the header chain
)

// Refusal is why an IPv6 packet is dropped, and the parameter problem that reports it. The zero
// Refusal accepts the packet.
type Refusal struct {
	Drop    DropReason
	Report  bool  // send a parameter problem
	Code    uint8 // code of the parameter problem, such as ProblemField
	Pointer int   // offset of the error in the packet
}

func silent(drop DropReason) Refusal { return Refusal{Drop: drop} }

// problem refuses a packet, with a report unless the packet is multicast (RFC 4443 §2.4(e.3)).
func (h *Header) problem(drop DropReason, code uint8, pointer int) Refusal {
	return Refusal{Drop: drop, Report: !h.Dst.IsMulticast(), Code: code, Pointer: pointer}
}

// CheckOptions checks the Hop-by-Hop Options header of packet b, if ParseHeader found one (RFC 8200
// §4.3). Every node on the path calls it.
func (h *Header) CheckOptions(b []byte) Refusal {
	if h.Options == nil {
		return Refusal{}
	}
	r := h.checkOptions(b, HeaderLen6, h.Len)
	if r.Drop == DropNone && binary.BigEndian.Uint16(b[payloadLenAt:]) == 0 {
		// RFC 2675 §3: a payload length of 0 needs the Jumbo Payload option.
		return h.problem(DropJumbo, ProblemField, payloadLenAt)
	}
	return r
}

// Walk processes the other extension headers of packet b for this node, in their order (RFC 8200
// §4), up to the upper layer's header, or that after a Fragment header. It updates h.Len, Protocol,
// Options and the fields that a Fragment header contains. The payload is then b[h.Len:h.TotalLen].
func (h *Header) Walk(b []byte) Refusal {
	if !isExtension(h.Protocol) && h.Protocol != NextNone {
		return Refusal{}
	}
	b = b[:h.TotalLen]
	at, next := h.Len, h.Protocol
	field := nextAt(b, at)
	for n := 0; isExtension(next); n++ {
		if next == NextHopByHop {
			return h.problem(DropExtension, ProblemNext, field) // RFC 8200 §4: only first
		}
		end := headerEnd(b, at, next)
		switch {
		case end < 0:
			return silent(DropExtension)
		case n == mostExtensions || end > HeaderLen6+mostChainLen:
			return silent(DropExtensionLimit)
		}
		fragment := false
		switch next {
		case NextDestination:
			if r := h.checkOptions(b, at, end); r.Drop != DropNone {
				return r
			}
		case NextRouting:
			if b[at+3] != 0 {
				// No routing type is supported (RFC 8200 §4.4), not even type 0 (RFC 5095 §3).
				return h.problem(DropSourceRoute, ProblemField, at+2)
			}
		case NextFragment:
			fragment = h.readFragment(b[at:])
		}
		h.take(b, at, end, fragment)
		if fragment {
			return Refusal{}
		}
		at, next, field = end, h.Protocol, at
	}
	if next == NextNone {
		return silent(DropNoNextHeader)
	}
	return Refusal{}
}

// take adds the extension header between at and end to h.
func (h *Header) take(b []byte, at, end int, fragment bool) {
	h.Len, h.Protocol, h.Next = end, b[at], b[nextHeaderAt]
	if !fragment {
		h.Options = b[HeaderLen6:end]
	}
}

// readFragment reads a Fragment header. It returns false for an atomic fragment, which is processed
// like a packet without that header (RFC 6946 §4).
func (h *Header) readFragment(b []byte) bool {
	word := binary.BigEndian.Uint16(b[2:])
	h.FragmentHeader = true
	h.FragOff, h.MF = int(word&^(fragmentUnit-1)), word&moreFragments6 != 0
	if !h.IsFragment() {
		return false
	}
	h.ID = binary.BigEndian.Uint32(b[4:])
	return true
}

// RouterAlert reports whether the Hop-by-Hop Options header, which CheckOptions has checked, asks
// routers to look at the packet (RFC 2711 §2.1).
func (h *Header) RouterAlert() bool {
	if len(h.Options) == 0 || h.Next != NextHopByHop {
		return false
	}
	o := h.Options[:fragmentLen+int(h.Options[1])*8]
	for at := 2; at < len(o); at++ {
		if o[at] == optionPad1 {
			continue
		}
		if o[at] == optionAlert && o[at+1] == 2 {
			return true
		}
		at += 1 + int(o[at+1])
	}
	return false
}

// checkOptions checks the options of the header from at to end (RFC 8200 §4.2).
func (h *Header) checkOptions(b []byte, at, end int) Refusal {
	options, padding := 0, 0
	for at += 2; at < end; {
		kind, size := b[at], 1
		if kind != optionPad1 {
			if at+2 > end || at+2+int(b[at+1]) > end {
				return h.problem(DropOption, ProblemField, at)
			}
			size = 2 + int(b[at+1])
		}
		if kind == optionPad1 || kind == optionPadN {
			padding += size
		} else {
			options, padding = options+1, 0
		}
		if options > mostOptions || padding > mostPadding {
			return silent(DropExtensionLimit)
		}
		if r := h.checkOption(kind, at); r.Drop != DropNone {
			return r
		}
		at += size
	}
	return Refusal{}
}

// checkOption decides what an option does to its packet. For an unknown option, the two highest
// bits of its type decide (RFC 8200 §4.2).
func (h *Header) checkOption(kind uint8, at int) Refusal {
	if kind == optionJumbo {
		// RFC 2675 §3: a node without jumbograms does not know the option.
		return h.problem(DropJumbo, ProblemOption, at)
	}
	const skip, discard, always = 0, 1, 2
	switch kind >> 6 {
	case skip:
		return Refusal{}
	case discard:
		return silent(DropOption)
	case always:
		return Refusal{Drop: DropOption, Report: true, Code: ProblemOption, Pointer: at}
	}
	return h.problem(DropOption, ProblemOption, at)
}
