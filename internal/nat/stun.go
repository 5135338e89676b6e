package nat

import (
	"encoding/binary"
	"net/netip"
)

// These are the messages and attributes of STUN that the probe needs (RFC 8489 §5, §14; RFC 5780
// §7).
const (
	stunRequest = 0x0001
	stunSuccess = 0x0101
	stunCookie  = 0x2112a442
	stunHeader  = 20

	attrChangeRequest = 0x0003
	attrXORMapped     = 0x0020
	attrOtherAddress  = 0x802c

	changeAddr = 4
	changePort = 2
)

// STUNPort is the usual port of a STUN server.
const STUNPort = 3478

// transaction identifies a request and its answer.
type transaction [12]byte

// appendRequest appends a binding request, which asks for an answer from another address or port.
func appendRequest(b []byte, id transaction, change uint32) []byte {
	b = appendSTUN(b, stunRequest, id, 8)
	b = binary.BigEndian.AppendUint16(b, attrChangeRequest)
	b = binary.BigEndian.AppendUint16(b, 4)
	return binary.BigEndian.AppendUint32(b, change)
}

func appendSTUN(b []byte, typ uint16, id transaction, length int) []byte {
	b = binary.BigEndian.AppendUint16(b, typ)
	b = binary.BigEndian.AppendUint16(b, uint16(length))
	b = binary.BigEndian.AppendUint32(b, stunCookie)
	return append(b, id[:]...)
}

func appendAddress(b []byte, attr uint16, a netip.AddrPort, xor uint32) []byte {
	b = binary.BigEndian.AppendUint16(b, attr)
	b = append(b, 0, 8, 0, 1) // length of the value, and family IPv4
	b = binary.BigEndian.AppendUint16(b, a.Port()^uint16(xor>>16))
	return binary.BigEndian.AppendUint32(b, number(a.Addr())^xor)
}

// stun is a parsed message. An address is invalid if the message did not contain it.
type stun struct {
	typ           uint16
	id            transaction
	change        uint32
	mapped, other netip.AddrPort
}

// parseSTUN parses a STUN message. It returns false if b is not a STUN message.
func parseSTUN(b []byte) (m stun, ok bool) {
	if len(b) < stunHeader || binary.BigEndian.Uint32(b[4:]) != stunCookie ||
		int(binary.BigEndian.Uint16(b[2:])) != len(b)-stunHeader {
		return m, false
	}
	m.typ, m.id = binary.BigEndian.Uint16(b), transaction(b[8:])
	for rest := b[stunHeader:]; len(rest) > 0; {
		if len(rest) < 4 {
			return m, false
		}
		n := int(binary.BigEndian.Uint16(rest[2:]))
		padded := 4 + (n+3)&^3
		if padded > len(rest) {
			return m, false
		}
		value := rest[4 : 4+n]
		switch attr := binary.BigEndian.Uint16(rest); {
		case attr == attrChangeRequest && n == 4:
			m.change = binary.BigEndian.Uint32(value)
		case attr == attrXORMapped && n == 8:
			m.mapped = addressIn(value, stunCookie)
		case attr == attrOtherAddress && n == 8:
			m.other = addressIn(value, 0)
		}
		rest = rest[padded:]
	}
	return m, true
}

func addressIn(b []byte, xor uint32) netip.AddrPort {
	return netip.AddrPortFrom(addrOf(binary.BigEndian.Uint32(b[4:])^xor),
		binary.BigEndian.Uint16(b[2:])^uint16(xor>>16))
}

// Reflector answers the requests of probes at two addresses and two ports (RFC 5780 §6).
type Reflector struct {
	Addrs [2]netip.Addr // two IPv4 addresses
	Ports [2]uint16
}

// Answer returns the answer to a datagram that a client sent to one of the reflector's numbered
// endpoints, and the number of the endpoint that sends the answer.
func (r *Reflector) Answer(
	b []byte, from netip.AddrPort, addr, port int,
) (answer []byte, viaAddr, viaPort int, ok bool) {
	m, ok := parseSTUN(b)
	if !ok || m.typ != stunRequest || !from.Addr().Is4() {
		return nil, 0, 0, false
	}
	answer = appendSTUN(nil, stunSuccess, m.id, 24)
	answer = appendAddress(answer, attrXORMapped, from, stunCookie)
	other := netip.AddrPortFrom(r.Addrs[1-addr], r.Ports[1-port])
	answer = appendAddress(answer, attrOtherAddress, other, 0)
	if m.change&changeAddr != 0 {
		addr = 1 - addr
	}
	if m.change&changePort != 0 {
		port = 1 - port
	}
	return answer, addr, port, true
}
