//go:build linux

package lead

import (
	"context"
	"fmt"
	"io"
	"slices"
	"time"
)

// Turns runs contenders in turns, A B C A B C, so that changes of the machine's load affect all of
// them equally.
type Turns struct {
	Rounds int
	Log    io.Writer // progress messages
	// Until is the latest time at which a round may begin, except the first round of a case. Zero:
	// no limit.
	Until time.Time
}

// Samples holds the runs of one contender.
type Samples struct {
	Name string
	Runs []Sample
	Err  error // error of the first run that failed; no run follows it
}

// Run makes the runs. A contender that fails is reported and excluded; the others continue.
func (t *Turns) Run(ctx context.Context, name string, trials ...Trial) []Samples {
	all := make([]Samples, len(trials))
	for round := range t.Rounds {
		if round > 0 && !t.Until.IsZero() && time.Now().After(t.Until) {
			_, _ = fmt.Fprintf(t.Log, "%s: %d of %d rounds, out of time\n",
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
				_, _ = fmt.Fprintf(t.Log, "%s, %s: %v\n", name, trials[i].Name, err)
				continue
			}
			_, _ = fmt.Fprintf(t.Log, "%s, round %d: %s %.4g%s\n",
				name, round+1, trials[i].Name, s.Value, s.aside())
			all[i].Runs = append(all[i].Runs, s)
		}
	}
	return all
}

// aside formats the additional figures of a run.
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

// Median returns the median of f over the runs. For an even number of runs, it is the mean of the
// two middle values.
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

// Value returns the median of the values.
func (s *Samples) Value() float64 { return s.Median(func(r *Sample) float64 { return r.Value }) }
