package netem

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"
)

// jitterScale is the entry in a tc table that stands for the configured jitter.
const jitterScale = 8192

// scaledJitter returns a jitter multiplied by an entry of a table, rounded as in the kernel.
func scaledJitter(jitter time.Duration, entry int64) time.Duration {
	rest := int64(jitter) % jitterScale * entry
	if rest >= 0 {
		rest += jitterScale / 2
	} else {
		rest -= jitterScale / 2
	}
	return time.Duration(rest/jitterScale + int64(jitter)/jitterScale*entry)
}

// maxTable is the limit of tc.
const maxTable = 16 << 10

// ParseTable parses a distribution in the form of tc's .dist files: integers from -32768 to 32767
// separated by blanks, and comments from a # to the end of the line.
func ParseTable(text string) ([]int16, error) {
	var table []int16
	n := 0
	for line := range strings.Lines(text) {
		n++
		numbers, _, _ := strings.Cut(line, "#")
		for i, field := range strings.Fields(numbers) {
			entry, err := strconv.ParseInt(field, 10, 16)
			if err != nil {
				// The error does not quote the text, which could come from any file of the node.
				return nil, fmt.Errorf("%w: line %d, field %d: must be a number from %d to %d",
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

// DelayTrace is measured jitter: the additional delay of packets over time.
type DelayTrace struct {
	// Points are in the order of time. Each is valid until the next; the first is also valid before
	// its time. They are not copied.
	Points []DelayPoint
}

// DelayPoint is the additional delay of packets from a time since the link's origin.
type DelayPoint struct{ At, Delay time.Duration }

// Validate returns an error if the description is invalid.
func (d DelayTrace) Validate() error {
	if len(d.Points) == 0 {
		return fmt.Errorf("%w: the delay trace is empty", ErrConfig)
	}
	for i, p := range d.Points {
		switch {
		case p.At < 0 || i > 0 && p.At < d.Points[i-1].At:
			return fmt.Errorf("%w: delay %d at %v: times must be in ascending order", ErrConfig,
				i+1, p.At)
		case p.Delay < -maxJitter || p.Delay > maxJitter:
			return fmt.Errorf("%w: delay %d is %v: must be at most %v, positive or negative",
				ErrConfig, i+1, p.Delay, maxJitter)
		}
	}
	return nil
}

// Draw implements Jitter.
func (d DelayTrace) Draw(since time.Duration, _ *rand.Rand) time.Duration {
	compare := func(p DelayPoint, at time.Duration) int { return cmp.Compare(p.At, at) }
	later, _ := slices.BinarySearchFunc(d.Points, since+1, compare)
	return d.Points[max(0, later-1)].Delay
}
