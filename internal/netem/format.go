package netem

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// None reports whether the configuration leaves all packets unchanged.
func (c Config) None() bool { return c.String() == nothing }

// Random reports whether any decision about packets is random.
func (c Config) Random() bool {
	switch l := c.Loss.(type) {
	case nil, PeriodicLoss, ListedLoss, ByteLoss:
	case OnOff:
		if l.Poisson {
			return true
		}
	default:
		return true
	}
	switch c.Queue.(type) {
	case RED, PIE, FQCoDel:
		return true
	}
	if s, slots := c.Rate.(Slots); slots && (s.Max > s.Min || s.Jitter != nil) {
		return true
	}
	_, trace := c.Jitter.(DelayTrace)
	return c.Duplicate > 0 || c.Corrupt.Share > 0 || c.Truncate > 0 || c.Reorder.Share > 0 ||
		c.Jitter != nil && !trace
}

// nothing is the String of a Config that forwards packets unchanged.
const nothing = "nothing"

// String returns the words from which Parse makes the same Config, or "nothing" if it leaves
// packets unchanged. Parts that other packages define have no words, and String shows their types.
func (c Config) String() string {
	var b wordList
	b.formatDelay(&c)
	b.formatLoss(c.Loss)
	b.share("duplicate", c.Duplicate, c.Correlation.Duplicate)
	b.formatReorder(&c)
	b.share("corrupt", c.Corrupt.Share, c.Correlation.Corrupt)
	if c.Corrupt.Share > 0 && c.Corrupt.Bits > 0 {
		b.add("bits", strconv.Itoa(c.Corrupt.Bits))
	}
	if where, some := regions[c.Corrupt.Where]; some && c.Corrupt.Share > 0 {
		b.add("where", where)
	}
	b.share("truncate", c.Truncate, 0)
	b.formatPolicer(c.Policer)
	b.formatRate(&c)
	if c.Seed != 0 && len(b) > 0 {
		b.add("seed", strconv.FormatUint(c.Seed, 10))
	}
	if len(b) == 0 {
		return nothing
	}
	return strings.Join(b, " ")
}

// regions are the words for the parts of a packet.
var regions = map[Region]string{Headers: "headers", Payload: "payload"}

// wordList collects the words of a text.
type wordList []string

func (s *wordList) add(words ...string) { *s = append(*s, words...) }

func (s *wordList) share(name string, share, correlation float64) {
	if share <= 0 {
		return
	}
	s.add(name, percent(share))
	if correlation > 0 {
		s.add(percent(correlation))
	}
}

func (s *wordList) formatDelay(c *Config) {
	if c.Delay == 0 && c.Jitter == nil {
		return
	}
	s.add("delay", c.Delay.String())
	if c.Jitter == nil {
		return
	}
	size, name := jitterWords(c.Jitter)
	s.add(size)
	if c.Correlation.Jitter > 0 {
		s.add(percent(c.Correlation.Jitter))
	}
	if name != "" {
		s.add("distribution", name)
	}
	s.flag("overtake", c.Overtaking)
}

func (s *wordList) formatLoss(loss Loss) {
	switch l := loss.(type) {
	case nil:
	case UniformLoss:
		s.add("loss", percent(float64(l)))
	case CorrelatedLoss:
		s.share("loss", l.Share, l.Correlation)
	case PeriodicLoss:
		s.add("loss", "every", strconv.FormatUint(l.Every, 10))
		if l.First > 0 {
			s.add("first", strconv.FormatUint(l.First, 10))
		}
	case GilbertElliott:
		s.add("loss", "gemodel", percent(l.P), percent(l.R), percent(l.Bad), percent(l.Good))
	case FourStates:
		s.add("loss", "state", percent(l.P13), percent(l.P31), percent(l.P32), percent(l.P23),
			percent(l.P14))
	case ListedLoss:
		s.add("drop", formatList(l))
	case ByteLoss:
		s.add("loss", "bytes", formatList(l))
	case OnOff:
		s.add("loss", "onoff", l.On.String(), l.Off.String())
		s.flag("poisson", l.Poisson)
	case ByTime:
		s.formatWindows(&l)
	default:
		s.add("loss", fmt.Sprintf("%T", l))
	}
}

func (s *wordList) formatReorder(c *Config) {
	s.share("reorder", c.Reorder.Share, c.Correlation.Reorder)
	if c.Reorder.Share <= 0 {
		return
	}
	if c.Reorder.Gap > 0 {
		s.add("gap", strconv.Itoa(c.Reorder.Gap))
	}
	late := time.Duration(0)
	if c.Delay == 0 {
		late = Lateness
	}
	if c.Reorder.Late != late {
		s.add("late", c.Reorder.Late.String())
	}
}

// percent formats a share, without the errors of binary fractions.
func percent(share float64) string {
	const digits = 12
	return strconv.FormatFloat(share*100, 'g', digits, 64) + "%"
}

// formatWindows formats windows of loss that the words can express: all have the same share, and
// they do not repeat.
func (s *wordList) formatWindows(b *ByTime) {
	var list []string
	for _, w := range b.Windows {
		list = append(list, w.From.String()+"-"+w.To.String())
		if w.Share != b.Windows[0].Share || b.Every > 0 {
			s.add("loss", fmt.Sprintf("%T", *b))
			return
		}
	}
	if len(list) == 0 {
		return
	}
	s.add("loss", "during", strings.Join(list, ","))
	if b.Windows[0].Share < 1 {
		s.add(percent(b.Windows[0].Share))
	}
}

// formatList formats numbers as values of the keyword drop, with ranges.
func formatList(l []uint64) string {
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
