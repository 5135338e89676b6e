package rdt

import "github.com/tidepool-net/tidepool/internal/clock"

// acknowledge processes an acknowledgment: all packets before p.sequence have arrived, and for an
// echo also packet p.arrived.
func (s *Sender) acknowledge(now clock.Time, p *packet) Drop {
	ahead := p.sequence - s.flight.una
	old := int32(ahead) < 0
	if !old && ahead > s.flight.nxt-s.flight.una {
		return DropWildAck
	}
	if p.kind == kindEcho && s.flight.holds(p.arrived) {
		s.arrived(now, p)
	}
	switch {
	case old:
		return DropOldAck
	case ahead > 0:
		s.flight.popBefore(p.sequence)
		s.duplicates = 0
		s.progress = now
	case s.flight.len() > 0:
		s.info.DuplicateAcks++
		s.duplicate()
	}
	s.info.Acks++
	return dropNone
}

// duplicate counts an acknowledgment without new information. As in the document, the count
// restarts after each retransmission, so a packet that is lost twice is retransmitted twice. A
// packet that is still in flight may also be retransmitted.
func (s *Sender) duplicate() {
	if s.cfg.Selective {
		return
	}
	s.duplicates++
	if s.duplicates < s.cfg.Duplicates {
		return
	}
	s.duplicates = 0
	if s.flight.at(s.flight.una).place == placeSent {
		s.info.FastResent++
		s.flight.move(s.flight.una, placeLost)
	}
}

// arrived uses the packet and timestamp of an echo. It measures only echoes of the last
// transmission of a packet, so a receiver cannot forge a round-trip time.
func (s *Sender) arrived(now clock.Time, p *packet) {
	r := s.flight.at(p.arrived)
	last := r.place != placeNone && r.sentAt == p.stamp
	if last {
		s.echoed = true
		s.timeout.sample(now.Sub(p.stamp))
	}
	if !s.cfg.Selective || r.place == placeNone {
		return
	}
	serial := r.serial
	s.flight.move(p.arrived, placeNone)
	if last {
		s.overtaken(serial)
	}
}

// overtaken marks packets as lost if they were sent Duplicates transmissions before one that has
// arrived (the packet threshold of RFC 9002 §6.1.1).
func (s *Sender) overtaken(serial uint64) {
	for {
		r, seq, ok := s.flight.first(placeSent)
		if !ok || r.serial+uint64(s.cfg.Duplicates) > serial {
			return
		}
		s.info.FastResent++
		s.flight.move(seq, placeLost)
	}
}
