package netem

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
)

func (s *wordList) formatRate(c *Config) {
	switch r := c.Rate.(type) {
	case nil:
		s.limits(Bound{Packets: c.MaxPackets, Bytes: c.MaxBytes})
		return
	case BitsPerSecond:
		s.add("rate", formatBits(int64(r)))
	case Cells:
		s.add("rate", formatBits(int64(r.Rate)), strconv.Itoa(c.Overhead), strconv.Itoa(r.Size))
		if r.Overhead > 0 {
			s.add(strconv.Itoa(r.Overhead))
		}
		s.formatQueue(c.Queue)
		return
	case Schedule:
		s.formatSchedule(&r, c.Overhead)
		s.formatQueue(c.Queue)
		return
	case Slots:
		s.formatSlots(&r)
	case Opportunities:
		if r.Name == "" {
			s.add("rate", fmt.Sprintf("trace(%d opportunities)", len(r.At)))
			break
		}
		s.add("trace", r.Name)
		s.flag("once", r.Once)
	default:
		s.add("rate", fmt.Sprintf("%T", r))
	}
	if c.Overhead > 0 {
		s.add(strconv.Itoa(c.Overhead))
	}
	s.formatQueue(c.Queue)
}

func (s *wordList) formatSchedule(r *Schedule, overhead int) {
	var steps []string
	for i, step := range r.Steps {
		text := formatBits(int64(step.Rate))
		if i > 0 {
			text += "@" + step.At.String()
		}
		steps = append(steps, text)
	}
	s.add("rate", strings.Join(steps, ","))
	if overhead > 0 {
		s.add(strconv.Itoa(overhead))
	}
	if r.Every > 0 {
		s.add("repeat", r.Every.String())
	}
}

func (s *wordList) formatSlots(r *Slots) {
	s.add("slot")
	if r.Jitter != nil {
		size, name := jitterWords(r.Jitter)
		name = cmp.Or(name, shapeUniform)
		s.add("distribution", name, r.Min.String(), size)
	} else {
		s.add(r.Min.String())
		if r.Max > 0 {
			s.add(r.Max.String())
		}
	}
	if r.Packets > 0 {
		s.add("packets", strconv.Itoa(r.Packets))
	}
	if r.Bytes > 0 {
		s.add("bytes", formatBytes(r.Bytes))
	}
}

func (s *wordList) formatQueue(queue Discipline) {
	switch q := queue.(type) {
	case nil:
	case DropTail:
		s.limits(Bound(q))
	case DropHead:
		s.limits(Bound(q))
		s.add(wordDropHead)
	case CoDel:
		s.limits(q.bound())
		s.add(wordCoDel, "target", q.Target.String(), "interval", q.Interval.String())
		s.flag("ecn", q.ECN)
	case FQCoDel:
		s.limits(Bound{Packets: q.Packets})
		s.add(wordFQCoDel, "flows", strconv.Itoa(q.Flows), "quantum", formatBytes(q.Quantum),
			"memory_limit", formatBytes(q.Bytes), "target", q.Target.String(),
			"interval", q.Interval.String())
		s.flag("noecn", !q.ECN)
	case PIE:
		s.limits(q.bound())
		s.add(wordPIE, "target", q.Target.String(), "tupdate", q.Update.String(),
			"alpha", formatSixteenths(q.Alpha), "beta", formatSixteenths(q.Beta),
			"allowance", q.Burst.String())
		s.flag("dq_rate_estimator", !q.Timestamps)
		s.flag("ecn", q.ECN)
	case RED:
		s.formatRED(&q)
	default:
		s.add("queue", fmt.Sprintf("%T", q))
	}
}

func (s *wordList) formatRED(q *RED) {
	least, most := formatBytes(q.Min), formatBytes(q.Max)
	if q.InPackets {
		least, most = strconv.Itoa(q.Min), strconv.Itoa(q.Max)
	}
	s.limits(q.bound())
	s.add(wordRED, "min", least, "max", most, "probability", percent(q.MaxP),
		"weight", percent(q.Weight), "avpkt", formatBytes(q.Mean))
	s.flag("abrupt", q.Abrupt)
	s.flag("ecn", q.ECN)
	s.flag("markall", q.MarkAll)
}

func (s *wordList) formatPolicer(p *Policer) {
	if p == nil {
		return
	}
	s.add("police", formatBits(int64(p.Rate)), formatBytes(p.Burst))
	s.flag("mark", p.Mark)
}

func (s *wordList) flag(word string, on bool) {
	if on {
		s.add(word)
	}
}

func (s *wordList) limits(b Bound) {
	var list []string
	if b.Packets > 0 {
		list = append(list, strconv.Itoa(b.Packets))
	}
	if b.Bytes > 0 {
		list = append(list, formatBytes(b.Bytes))
	}
	if b.Time > 0 {
		list = append(list, b.Time.String())
	}
	if len(list) > 0 {
		s.add("limit", strings.Join(list, ","))
	}
}

// formatBytes formats a length in the largest unit that divides it.
func formatBytes(n int) string {
	if n >= 1<<10 && n%(1<<10) == 0 {
		return strconv.Itoa(n>>10) + "kb"
	}
	return strconv.Itoa(n) + "b"
}

// formatBits formats a rate in the largest unit that divides it.
func formatBits(bits int64) string {
	for _, u := range []unit{{"gbit", 1e9}, {"mbit", 1e6}, {"kbit", 1e3}} {
		if bits > 0 && bits%int64(u.of) == 0 {
			return strconv.FormatInt(bits/int64(u.of), 10) + u.name
		}
	}
	return strconv.FormatInt(bits, 10) + "bit"
}

func formatSixteenths(x float64) string { return strconv.FormatFloat(16*x, 'f', -1, 64) }

// jitterWords returns a jitter's size and the name of its distribution; an empty name means
// uniform.
func jitterWords(jitter Jitter) (size, name string) {
	if j, ok := jitter.(RandomJitter); ok {
		return j.Size.String(), j.Shape
	}
	return fmt.Sprintf("%T", jitter), ""
}
