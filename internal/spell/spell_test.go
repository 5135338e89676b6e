package spell

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestDidYouMean(t *testing.T) {
	words := []string{"delay", "loss", "rate", "up", "MTU"}
	for typed, want := range map[string]string{
		"dealy": " (did you mean delay?)", // two letters swapped
		"lss":   " (did you mean loss?)",
		"RATES": " (did you mean rate?)",
		"mut":   " (did you mean MTU?)",
		"x":     "", // as far from up as nothing at all
		"queue": "",
		"":      "",
	} {
		assert.Equal(t, want, DidYouMean(typed, words), typed)
	}
}
