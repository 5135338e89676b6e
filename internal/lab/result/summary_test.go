package result_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/tidepool-net/tidepool/internal/lab/result"
)

// The summary of many flows has the minimum, the median and the maximum of each kind.
func TestSummarize(t *testing.T) {
	trial := result.Trial{}
	add := func(label string, goodput, completion float64) {
		f := result.Flow{
			Name: "x", Label: label, Finished: completion > 0,
			Values: result.Values{result.Goodput: goodput},
		}
		if f.Finished {
			f.Values[result.Completion] = completion
		} else {
			f.Note = "out of time"
		}
		trial.Flows = append(trial.Flows, f)
	}
	add("reno", 3, 9)
	add("reno", 1, 7)
	add("cubic", 10, 1)
	add("reno", 2, 0)
	add("cubic", 20, 2)
	assert.Equal(t, []string{"reno", "cubic"}, trial.Labels())

	reno := trial.Summarize("reno")
	for i, want := range []result.Values{
		{result.Goodput: 1, result.Completion: 7},
		{result.Goodput: 2, result.Completion: 9},
		{result.Goodput: 3}, // the flow that did not finish counts as the slowest
	} {
		assert.Equal(t, want, reno[i].Values)
		assert.False(t, reno[i].Finished)
		assert.Equal(t, "x out of time", reno[i].Note)
	}
	assert.Equal(t, "minimum of 3", reno[0].Name)
	cubic := trial.Summarize("cubic")
	assert.Equal(t, "median of 2", cubic[1].Name)
	assert.Equal(t, result.Values{result.Goodput: 15, result.Completion: 1.5}, cubic[1].Values)
	assert.True(t, cubic[1].Finished)
}
