//go:build linux

package lead

import (
	"context"
	"errors"
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// TestTurns checks that the order is A B A B, that a failed contender is excluded without affecting
// the others, and that a case that starts late has one round.
func TestTurns(t *testing.T) {
	var order string
	trial := func(name string, err error) Trial {
		return Trial{Name: name, Run: func(context.Context) (Sample, error) {
			order += name
			return Sample{Value: float64(len(order))}, err
		}}
	}
	turns := Turns{Rounds: 3, Log: io.Discard}
	all := turns.Run(t.Context(), "case", trial("a", nil), trial("b", nil),
		trial("c", errors.New("no")))
	assert.Equal(t, "abcabab", order)
	assert.InDelta(t, 4, all[0].Value(), 0, "of 1, 4 and 6")
	assert.Error(t, all[2].Err)

	order, turns.Until = "", time.Now().Add(-time.Second)
	all = turns.Run(t.Context(), "late", trial("a", nil), trial("b", nil))
	assert.Equal(t, "ab", order)
	assert.InDelta(t, 1.0, all[0].Value(), 0)
}
