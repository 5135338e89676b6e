package netem

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"
)

// jitterScale is what stands for the jitter itself in a table of tc.
const jitterScale = 8192

// scaledJitter is a jitter times an entry of a table, rounded as the kernel does it.
func scaledJitter(jitter time.Duration, entry int64) time.Duration {
	rest := int64(jitter) % jitterScale * entry
	if rest >= 0 {
		rest += jitterScale / 2
	} else {
		rest -= jitterScale / 2
	}
	return time.Duration(rest/jitterScale + int64(jitter)/jitterScale*entry)
}

// TableJitter has the distribution of a table, as files of tc's have them: each entry is as
// likely as another, and 8192 stands for this jitter.
type TableJitter struct {
	Jitter time.Duration
	Table  []int16 // not copied
	// Name is what words call it; a table without one has no words.
	Name string
}

// Validate reports what is wrong with the description.
func (t TableJitter) Validate() error {
	if len(t.Table) == 0 || len(t.Table) > maxTable {
		return fmt.Errorf("%w: a table of %d entries: must be 1 to %d",
			ErrConfig, len(t.Table), maxTable)
	}
	return validJitter(t.Jitter)
}

// Draw implements Jitter.
func (t TableJitter) Draw(_ time.Duration, random *rand.Rand) time.Duration {
	return scaledJitter(t.Jitter, int64(t.Table[random.IntN(len(t.Table))]))
}

// maxTable is tc's own bound.
const maxTable = 16 << 10

// ParseTable reads a distribution as tc's .dist files have it: whole numbers from -32768 to
// 32767 between blanks, and comments from a # to the end of the line.
func ParseTable(text string) ([]int16, error) {
	var table []int16
	n := 0
	for line := range strings.Lines(text) {
		n++
		numbers, _, _ := strings.Cut(line, "#")
		for i, field := range strings.Fields(numbers) {
			entry, err := strconv.ParseInt(field, 10, 16)
			if err != nil {
				// What is there is not shown: it may be any file of the node's.
				return nil, fmt.Errorf("%w: line %d, word %d: must be a number from %d to %d",
					ErrConfig, n, i+1, math.MinInt16, math.MaxInt16)
			}
			if len(table) == maxTable {
				return nil, fmt.Errorf("%w: line %d: more than %d numbers", ErrConfig, n, maxTable)
			}
			table = append(table, int16(entry))
		}
	}
	if len(table) == 0 {
		return nil, fmt.Errorf("%w: no numbers", ErrConfig)
	}
	return table, nil
}

// DelayTrace is jitter that was measured: how much longer packets take at which time.
type DelayTrace struct {
	// Points are in the order of time. Each is in force until the next, or on the way to it
	// if Linear, and the first before it, too. They are not copied.
	Points []DelayPoint
	// Every is when they begin again, not before the last; 0: the last is in force for ever.
	Every  time.Duration
	Linear bool
}

// DelayPoint is how much longer packets take from a time after the link's origin on.
type DelayPoint struct{ At, Delay time.Duration }

// Validate reports what is wrong with the description.
func (d DelayTrace) Validate() error {
	if len(d.Points) == 0 {
		return fmt.Errorf("%w: a trace of delays without points", ErrConfig)
	}
	for i, p := range d.Points {
		switch {
		case p.At < 0 || i > 0 && p.At < d.Points[i-1].At:
			return fmt.Errorf("%w: delay %d at %v: must be in order of time", ErrConfig, i+1, p.At)
		case p.Delay < -maxJitter || p.Delay > maxJitter:
			return fmt.Errorf("%w: delay %d is %v: must be at most %v",
				ErrConfig, i+1, p.Delay, maxJitter)
		}
	}
	if last := d.Points[len(d.Points)-1].At; d.Every != 0 && d.Every < max(1, last) {
		return fmt.Errorf("%w: a trace of delays that repeats after %v: must be %v or more",
			ErrConfig, d.Every, max(1, last))
	}
	return nil
}

// Draw implements Jitter.
func (d DelayTrace) Draw(since time.Duration, _ *rand.Rand) time.Duration {
	if d.Every > 0 && since > 0 {
		since %= d.Every
	}
	i, after := 0, len(d.Points) // the first point after since is in between
	for i < after {
		if middle := (i + after) / 2; d.Points[middle].At <= since {
			i = middle + 1
		} else {
			after = middle
		}
	}
	if i == 0 {
		return d.Points[0].Delay
	}
	from := d.Points[i-1]
	if i == len(d.Points) || !d.Linear {
		return from.Delay
	}
	to := d.Points[i]
	return from.Delay + between(to.Delay-from.Delay, since-from.At, to.At-from.At)
}

// between is a difference times part/whole, rounded toward zero.
func between(d, part, whole time.Duration) time.Duration {
	return time.Duration(float64(d) * (float64(part) / float64(whole)))
}
