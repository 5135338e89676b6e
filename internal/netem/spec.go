package netem

import "time"

// QueueSpec describes a queue by the name of its discipline, with the parameters of all
// disciplines. Zero parameters stand for the discipline's defaults.
type QueueSpec struct {
	Discipline string // as in Words; empty: droptail
	Bound
	ECN              bool
	Target, Interval time.Duration // of CoDel and FQ-CoDel; PIE has the target too
	Flows, Quantum   int           // of FQ-CoDel
	PIE              PIE           // the other parameters of PIE
	RED              RED           // the other parameters of RED
}

// Queue returns the discipline that the description selects.
func (s *QueueSpec) Queue() Discipline {
	switch b := s.Bound; s.Discipline {
	case wordDropHead:
		return DropHead(b)
	case wordCoDel:
		return CoDel{
			Target: s.Target, Interval: s.Interval, Packets: b.Packets, Bytes: b.Bytes,
			Time: b.Time, ECN: s.ECN,
		}
	case wordFQCoDel:
		return FQCoDel{
			Target: s.Target, Interval: s.Interval, Flows: s.Flows, Quantum: s.Quantum,
			Packets: b.Packets, Bytes: b.Bytes, ECN: s.ECN,
		}
	case wordPIE:
		c := s.PIE
		c.Target, c.ECN, c.Packets, c.Bytes, c.Time = s.Target, s.ECN, b.Packets, b.Bytes, b.Time
		return c
	case wordRED:
		r := s.RED
		r.ECN, r.Packets, r.Bytes, r.Time = s.ECN, b.Packets, b.Bytes, b.Time
		return r
	}
	return DropTail(s.Bound)
}
