package sim_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/tidepool-net/tidepool/internal/netem"
	"github.com/tidepool-net/tidepool/internal/sim"
)

// Trials are paired. With one seed, a link loses the same packets by their number, for any
// algorithm, any number of flows, and any other components in the world.
func TestTrialsArePaired(t *testing.T) {
	losses := func(c cell, seed uint64) (lost []int, crossed int) {
		w, _ := c.world(t, seed)
		// The link leads away from the first router, or from the left host.
		link := sim.End{Host: w.Hosts()[0]}.Out()
		link.Watch(func(e *netem.Event) {
			switch {
			case e.Kind == netem.Depart:
				crossed++
			case e.Kind == netem.Drop && e.Why == netem.Model:
				lost = append(lost, crossed)
			}
		})
		w.Run(5 * time.Second)
		return lost, crossed
	}
	arms := map[string]cell{
		"cubic":      {flows: 1, congested: "cubic", rate: 20e6, loss: 0.01},
		"reno":       {flows: 1, congested: "reno", rate: 20e6, loss: 0.01},
		"bbr":        {flows: 1, congested: "bbr", rate: 20e6, loss: 0.01},
		"three":      {flows: 3, congested: "reno", rate: 20e6, loss: 0.01},
		"another":    {flows: 1, congested: "reno", rate: 50e6, loss: 0.01},
		"loses more": {flows: 1, congested: "reno", rate: 20e6, loss: 0.02},
	}
	want, most := losses(cell{flows: 2, congested: "bbr", rate: 20e6, loss: 0.01}, 3)
	upTo := func(list []int, n int) []int {
		for i, at := range list {
			if at > n {
				return list[:i]
			}
		}
		return list
	}
	for name, c := range arms {
		got, crossed := losses(c, 3)
		common := min(crossed, most)
		assert.Greater(t, common, 500, name)
		if c.loss == 0.01 {
			assert.Equal(t, upTo(want, common), upTo(got, common), name)
		} else {
			assert.Subset(t, upTo(got, common), upTo(want, common), name)
		}
	}
	other, _ := losses(cell{flows: 2, congested: "bbr", rate: 20e6, loss: 0.01}, 4)
	assert.NotEqual(t, want, other)
}
