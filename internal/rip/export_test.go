package rip

// ParsePacket2 parses a message without authentication. It stores the entries in scratch.
func ParsePacket2(b []byte, scratch []Entry2) (Packet2, Refusal) {
	p, r := parseHeader2(b)
	if r != Accepted {
		return p, r
	}
	p.Entries, r = parseEntries2(b[header2:], scratch)
	if r == Accepted && p.Version == 1 && !mustBeZeroFieldsAreZero(b, p.Entries) {
		return p, RefusedMustBeZero
	}
	return p, r
}
