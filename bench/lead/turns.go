//go:build linux

package lead

import (
	"context"
	"fmt"
	"io"
	"slices"
	"time"
)

// Turns are contenders that take turns, A B C A B C, so that an hour or a neighbour that is bad to
// one is bad to all.
type Turns struct {
	Rounds int
	Talk   io.Writer // what is going on, for people
	// Until is when no further round begins, but a case's first; the zero time: never.
	Until time.Time
}

// Samples are the runs of one contender.
type Samples struct {
	Name string
	Runs []Sample
	Err  error // of the first run that failed; none was made after it
}

// Run has them take their turns. A contender that fails is out; that is said and not the others'
// loss.
func (t *Turns) Run(ctx context.Context, name string, trials ...Trial) []Samples {
	all := make([]Samples, len(trials))
	for round := range t.Rounds {
		if round > 0 && !t.Until.IsZero() && time.Now().After(t.Until) {
			_, _ = fmt.Fprintf(t.Talk, "%s: %d of %d rounds, for lack of time\n",
				name, round, t.Rounds)
			break
		}
		for i := range trials {
			all[i].Name = trials[i].Name
			if all[i].Err != nil {
				continue
			}
			s, err := trials[i].Run(ctx)
			if err != nil {
				all[i].Err = err
				_, _ = fmt.Fprintf(t.Talk, "%s, %s: %v\n", name, trials[i].Name, err)
				continue
			}
			_, _ = fmt.Fprintf(t.Talk, "%s, round %d: %s %.4g%s\n",
				name, round+1, trials[i].Name, s.Value, s.aside())
			all[i].Runs = append(all[i].Runs, s)
		}
	}
	return all
}

// aside is what else people want to know.
func (s *Sample) aside() (text string) {
	if s.Sender > 0 {
		text = fmt.Sprintf(", %.3f ns/B to send", s.Sender)
	}
	if s.Receiver > 0 {
		text += fmt.Sprintf(", %.3f to receive", s.Receiver)
	}
	if s.Path.Retransmits > 0 {
		text += fmt.Sprintf(", %d retransmitted, %d RTOs", s.Path.Retransmits, s.Path.RTOs)
	}
	return text
}

// Median is the middle of what f says of each run, or the mean of the two in the middle.
func (s *Samples) Median(f func(*Sample) float64) float64 {
	var list []float64
	for i := range s.Runs {
		list = append(list, f(&s.Runs[i]))
	}
	if len(list) == 0 {
		return 0
	}
	slices.Sort(list)
	return (list[(len(list)-1)/2] + list[len(list)/2]) / 2
}

// Value is the median of the values.
func (s *Samples) Value() float64 { return s.Median(func(r *Sample) float64 { return r.Value }) }
