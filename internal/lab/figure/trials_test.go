package figure

import (
	"fmt"
	"math/rand/v2"

	"github.com/tidepool-net/tidepool/internal/lab/result"
)

// drawn returns a trial with about the given goodput and round-trip time. The values vary by a few
// percent.
func drawn(rng *rand.Rand, trial int, goodput, rtt float64, labels ...string) *result.Trial {
	about := func(v float64) float64 { return v * (1 + 0.04*rng.NormFloat64()) }
	t := &result.Trial{Trial: trial, Finished: true, Whole: result.Values{}}
	sum := 0.0
	for i, label := range labels {
		v := about(goodput / float64(len(labels)))
		sum += v
		f := result.Flow{
			Name: string(rune('a' + i)), Label: label, Finished: true,
			Values: result.Values{
				result.Goodput: v, result.RTTMean: about(rtt), result.RTTP95: about(1.5 * rtt),
				result.Completion: 8e7 / v, result.Sent: float64(int(about(1000))),
				result.Retransmits: float64(int(about(30))), result.CwndMean: about(60_000),
			},
		}
		if len(labels) == 1 {
			f.Name = label
		}
		t.Flows = append(t.Flows, f)
	}
	t.Whole[result.Utilization] = sum / 10e6
	t.Whole[result.QueueP95] = about(rtt / 4)
	if len(labels) > 1 {
		t.Whole[result.Jain] = min(1, about(0.98))
	}
	return t
}

// buffers returns the cells of a sweep over a queue's limit and an algorithm.
func buffers(trials int) []Cell {
	rng := rand.New(rand.NewPCG(8, 15))
	var cells []Cell
	for _, cc := range []string{"tahoe", "reno", "cubic"} {
		for _, limit := range []float64{0.1, 0.2, 0.5, 1, 2, 4} {
			base := map[string]float64{"tahoe": 0.6, "reno": 0.75, "cubic": 0.85}[cc]
			u := min(1, base+(1-base)*limit)
			c := Cell{
				Set: []Setting{
					{"cc", cc}, {"limit", fmt.Sprintf("%gbdp", limit)},
				},
				Theory: result.Values{result.Utilization: u},
			}
			for i := range trials {
				c.Trials = append(c.Trials, drawn(rng, i, 9.6e6*u, 0.04*(1+limit/2), cc))
			}
			cells = append(cells, c)
		}
	}
	return cells
}

// arms returns cells that differ in the algorithm. If both is set, each also exists in real time.
func arms(trials int, both bool) []Cell {
	rng := rand.New(rand.NewPCG(8, 16))
	var cells []Cell
	for i, cc := range []string{"tahoe", "reno", "newreno", "cubic", "bbr"} {
		c := Cell{Set: []Setting{{"cc", cc}}, Clock: "virtual"}
		for j := range trials {
			c.Trials = append(c.Trials, drawn(rng, j, 5e6+1e6*float64(i), 0.08-0.008*float64(i), cc))
		}
		cells = append(cells, c)
		if both {
			c.Real, c.Clock = true, "real"
			cells = append(cells, c)
		}
	}
	return cells
}
