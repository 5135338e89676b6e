package netem

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// None reports whether nothing happens to packets.
func (c Config) None() bool { return c.String() == nothing }

// Random reports whether chance decides about packets.
func (c Config) Random() bool {
	switch c.Loss.(type) {
	case nil, PeriodicLoss, ListedLoss:
	default:
		return true
	}
	return c.Duplicate > 0 || c.Corrupt.Share > 0 || c.Truncate > 0 || c.Jitter != nil ||
		c.Reorder.Share > 0
}

// nothing is the name of doing nothing.
const nothing = "nothing"

// String returns the words that Parse makes the same Config of; "nothing" for one that
// does nothing to packets. A part that is none of this package's, and that words have
// no name for, is shown by its type.
func (c Config) String() string {
	var b sentence
	b.formatDelay(&c)
	b.formatLoss(c.Loss)
	b.share("duplicate", c.Duplicate, c.Correlation.Duplicate)
	b.formatReorder(&c)
	b.share("corrupt", c.Corrupt.Share, c.Correlation.Corrupt)
	if c.Corrupt.Share > 0 && c.Corrupt.Bits > 0 {
		b.add("bits", strconv.Itoa(c.Corrupt.Bits))
	}
	b.share("truncate", c.Truncate, 0)
	b.formatRate(&c)
	if c.Seed != 0 && len(b) > 0 {
		b.add("seed", strconv.FormatUint(c.Seed, 10))
	}
	if len(b) == 0 {
		return nothing
	}
	return strings.Join(b, " ")
}

// sentence is words in the making.
type sentence []string

func (s *sentence) add(words ...string) { *s = append(*s, words...) }

func (s *sentence) share(name string, share, correlation float64) {
	if share <= 0 {
		return
	}
	s.add(name, percent(share))
	if correlation > 0 {
		s.add(percent(correlation))
	}
}

func (s *sentence) formatDelay(c *Config) {
	if c.Delay == 0 && c.Jitter == nil {
		return
	}
	s.add("delay", c.Delay.String())
	normal := false
	switch j := c.Jitter.(type) {
	case nil:
		return
	case UniformJitter:
		s.add(time.Duration(j).String())
	case NormalJitter:
		s.add(time.Duration(j).String())
		normal = true
	default:
		s.add(fmt.Sprintf("%T", j))
	}
	if c.Correlation.Jitter > 0 {
		s.add(percent(c.Correlation.Jitter))
	}
	if normal {
		s.add("distribution", "normal")
	}
	if c.Overtaking {
		s.add("overtake")
	}
}

func (s *sentence) formatLoss(loss Loss) {
	switch l := loss.(type) {
	case nil:
	case UniformLoss:
		s.add("loss", percent(float64(l)))
	case CorrelatedLoss:
		s.share("loss", l.Share, l.Correlation)
	case PeriodicLoss:
		s.add("loss", "every", strconv.FormatUint(l.Every, 10))
	case GilbertElliott:
		s.add("loss", "gemodel", percent(l.P), percent(l.R), percent(l.Bad), percent(l.Good))
	case ListedLoss:
		s.add("drop", l.String())
	default:
		s.add("loss", fmt.Sprintf("%T", l))
	}
}

func (s *sentence) formatReorder(c *Config) {
	s.share("reorder", c.Reorder.Share, c.Correlation.Reorder)
	if c.Reorder.Share <= 0 {
		return
	}
	if c.Reorder.Gap > 0 {
		s.add("gap", strconv.Itoa(c.Reorder.Gap))
	}
	usual := time.Duration(0)
	if c.Delay == 0 {
		usual = Lateness
	}
	if c.Reorder.Late != usual {
		s.add("late", c.Reorder.Late.String())
	}
}

func (s *sentence) formatRate(c *Config) {
	switch r := c.Rate.(type) {
	case nil:
		s.limits(c.MaxPackets, c.MaxBytes)
		return
	case BitsPerSecond:
		s.add("rate", formatRate(int64(r)))
	default:
		s.add("rate", fmt.Sprintf("%T", r))
	}
	if c.Overhead > 0 {
		s.add(strconv.Itoa(c.Overhead))
	}
	switch q := c.Queue.(type) {
	case nil:
	case DropTail:
		s.limits(q.Packets, q.Bytes)
	case CoDel:
		s.limits(q.Packets, q.Bytes)
		s.add("codel", "target", q.Target.String(), "interval", q.Interval.String())
		if q.ECN {
			s.add("ecn")
		}
	default:
		s.add("queue", fmt.Sprintf("%T", q))
	}
}

// limits writes one bound: the words have no place for two.
func (s *sentence) limits(packets, bytes int) {
	switch {
	case packets > 0:
		s.add("limit", strconv.Itoa(packets))
	case bytes >= 1<<10 && bytes%(1<<10) == 0:
		s.add("limit", strconv.Itoa(bytes>>10)+"kb")
	case bytes > 0:
		s.add("limit", strconv.Itoa(bytes)+"b")
	}
}

// percent writes a share without the noise of binary fractions.
func percent(share float64) string {
	const digits = 12
	return strconv.FormatFloat(share*100, 'g', digits, 64) + "%"
}

// formatRate writes a rate in the largest unit that divides it.
func formatRate(bits int64) string {
	for _, u := range []unit{{"gbit", 1e9}, {"mbit", 1e6}, {"kbit", 1e3}} {
		if bits%int64(u.of) == 0 {
			return strconv.FormatInt(bits/int64(u.of), 10) + u.name
		}
	}
	return strconv.FormatInt(bits, 10) + "bit"
}

// String returns the packets as drop lists them, runs joined.
func (l ListedLoss) String() string {
	var b strings.Builder
	for i := 0; i < len(l); {
		last := i
		for last+1 < len(l) && l[last+1] == l[last]+1 {
			last++
		}
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(strconv.FormatUint(l[i], 10))
		if last > i {
			b.WriteString("-" + strconv.FormatUint(l[last], 10))
		}
		i = last + 1
	}
	return b.String()
}
