package netem

import (
	"math/rand/v2"

	"github.com/tidepool-net/tidepool/internal/clock"
)

// FourStates is the loss model `state` of tc-netem(8), by Salsano, Ludovici and Ordine: a Markov
// chain with one step for each packet. The states are 1, a gap between bursts, where packets
// arrive; 2, arrival within a burst; 3, loss within a burst; and 4, a single loss in a gap, which
// leads back to 1. The state after the step decides about the packet.
type FourStates struct {
	P13 float64 // probability of a transition from 1 to 3; the others likewise
	P31 float64
	P32 float64
	P23 float64
	P14 float64
}

// Validate returns an error if the description is invalid.
func (f FourStates) Validate() error {
	return validShares(
		share{"p13", f.P13},
		share{"p31", f.P31},
		share{"p32", f.P32},
		share{"p23", f.P23},
		share{"p14", f.P14},
		share{"p13 and p14 together", f.P13 + f.P14},
		share{"p31 and p32 together", f.P31 + f.P32},
	)
}

// Mean returns the share of packets that the model loses in the long run.
func (f FourStates) Mean() float64 {
	if f.P13+f.P14 == 0 {
		return 0
	}
	// In equilibrium, the rates of entering and leaving the burst are equal: π1·p13 = π3·p31.
	// Within the burst π3·p32 = π2·p23, and π4 = π1·p14. Each is expressed as a multiple of
	// π1.
	lost3, kept2 := 0.0, 0.0
	if f.P13 > 0 {
		if f.P31 == 0 {
			return f.endless()
		}
		lost3 = f.P13 / f.P31
		if f.P32 > 0 {
			if f.P23 == 0 {
				return 0 // the chain stays in state 2
			}
			kept2 = lost3 * f.P32 / f.P23
		}
	}
	return (lost3 + f.P14) / (1 + kept2 + lost3 + f.P14)
}

// endless returns the share of packets that are lost in a burst that never ends.
func (f FourStates) endless() float64 {
	if f.P32 == 0 {
		return 1
	}
	return f.P23 / (f.P23 + f.P32)
}

// Start implements Loss. The first state is 1, as in the kernel. The model draws once per packet in
// every state.
func (f FourStates) Start(_ clock.Time, random *rand.Rand) LossFunc {
	state := 1
	return func(clock.Time, int) bool {
		state = f.after(state, random.Float64())
		return state >= 3
	}
}

// after returns the state that follows a state, given a random number from 0 to 1.
func (f FourStates) after(state int, draw float64) int {
	switch {
	case state == 1 && draw < f.P14:
		return 4
	case state == 1 && draw < f.P14+f.P13, state == 2 && draw < f.P23:
		return 3
	case state == 3 && draw < f.P32:
		return 2
	case state == 3 && draw < f.P32+f.P31, state == 4:
		return 1
	}
	return state
}
