package lab_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/lab"
	"github.com/tidepool-net/tidepool/internal/lab/formula"
	"github.com/tidepool-net/tidepool/internal/lab/plan"
	"github.com/tidepool-net/tidepool/internal/lab/result"
)

const header = `
name: checked
duration: 10s
path: {down: {delay: 30ms, rate: 12Mbit/s, queue: {type: droptail, limit: 1bdp}}, up: {delay: 30ms}}
flows: [{name: a, cc: reno, size: 1MB}]
sweep:
  flows.0.cc: [reno, cubic]
  path.down.queue.limit: [0.5bdp, 1bdp]
expect:
`

func cells(t *testing.T, expect string) []plan.Cell {
	t.Helper()
	f, err := plan.Parse("checked.yaml", []byte(header+expect))
	require.NoError(t, err)
	list, err := f.Cells()
	require.NoError(t, err)
	require.Len(t, list, 4)
	return list
}

// runs returns three runs of each cell: cell 0 is Reno with a buffer of half a bandwidth-delay
// product, 1 is Reno with one product, 2 and 3 are CUBIC.
func runs() []*result.Trial {
	use := []float64{.96, .99, .97, .995}
	var all []*result.Trial
	for c, u := range use {
		for i := range 3 {
			off := .001 * float64(i-1)
			all = append(all, &result.Trial{
				Cell: c, Trial: i, Finished: true, Whole: result.Values{result.Utilization: u + off},
				Flows: []result.Flow{{Name: "a", Finished: true, Values: result.Values{
					result.Goodput: 1e7 * (u + off), result.Completion: 1 / u,
				}}},
			})
		}
	}
	return all
}

// An expectation without a selection is checked in every cell, with that cell's swept variables.
// The verdict has the expected and the actual value.
func TestEachCell(t *testing.T) {
	v := lab.Expectations(cells(t, `  - {value: utilisation, is: 0.97, within: 1%, why: because, source: s, because: b}`), runs())
	require.Len(t, v, 4)
	assert.Equal(t, []bool{false, false, true, false}, passes(v))
	assert.Equal(t, "utilisation", v[0].What())
	assert.Equal(t, "0.97", v[0].Expected())
	// The half-width is t(2) = 4.303 times .001/√3.
	assert.Equal(t, "0.9600 ± 0.0025", v[0].Got())
	assert.Equal(t, "± 1 %", v[0].Tolerance())
	v[0].Unit, v[0].Values[0], v[0].Reach = formula.Rate, 12.57e6, 252.9e3
	assert.Equal(t, "12.57 ± 0.25 Mbit/s", v[0].Got(), "one unit for both")
	v[0].Values[0], v[0].Reach = 0, 1234
	assert.Equal(t, "0.0 ± 1.2 kbit/s", v[0].Got())
	assert.Equal(t, "because", v[0].Why)
	assert.Equal(t, "cc reno, limit 1bdp", v[1].Case())
	assert.Equal(t, 10, v[0].Line)
}

// A swept value that the claim does not mention makes no separate case.
func TestUnmentionedVariable(t *testing.T) {
	f, err := plan.Parse("checked.yaml", []byte(strings.Replace(header, "[reno, cubic]",
		"[reno, cubic, bbr]", 1)+"  - {value: utilisation(cubic) > utilisation(reno), source: s}"))
	require.NoError(t, err)
	list, err := f.Cells()
	require.NoError(t, err)
	v := lab.Expectations(list, runs())
	require.Len(t, v, 2)
	assert.Equal(t, "limit 0.5bdp", v[0].Case())
	assert.Equal(t, "limit 1bdp", v[1].Case())
}

// A comparison of cells is checked once for each value of the other variables.
func TestCompared(t *testing.T) {
	v := lab.Expectations(cells(t, `  - {value: "utilisation(cubic) > utilisation(reno)", source: s}`), runs())
	require.Len(t, v, 2)
	assert.Equal(t, []bool{true, true}, passes(v))
	assert.Equal(t, "limit 0.5bdp", v[0].Case())
	assert.Equal(t, "limit 1bdp", v[1].Case())
	assert.Equal(t, "> 0.96", v[0].Expected())

	v = lab.Expectations(cells(t,
		`  - {value: "utilisation(cubic, 1bdp) > utilisation(reno, 1bdp) > utilisation(cubic, 0.5bdp) > 0.9705", source: s}`), runs())
	require.Len(t, v, 1)
	assert.False(t, v[0].Pass)
	assert.Equal(t, "0.995, 0.99, 0.97, 0.9705", v[0].Got())
	assert.Empty(t, v[0].Case())
}

// Where selects cells, and formulas see the constants of each cell.
func TestWhere(t *testing.T) {
	v := lab.Expectations(cells(t, `
  - {value: utilisation, where: {cc: reno}, is: reno_utilisation(path.buffer), within: 1%, source: s, because: b}
  - {value: goodput, where: {cc: cubic, limit: 1bdp}, at_least: 9.9Mbit/s, source: s, because: b}
  - {value: completion.max, where: {cc: cubic, limit: 1bdp}, is: 1s, within: 10ms, source: s, because: b}`), runs())
	require.Len(t, v, 4)
	assert.Equal(t, []bool{true, true, true, true}, passes(v))
	assert.Equal(t, "0.9643", v[0].Expected(), "issue 5: b = .5 is .964")
	assert.Equal(t, "≥ 9.9 Mbit/s", v[2].Expected())
	assert.Equal(t, "± 10 ms", v[3].Tolerance())
	assert.Equal(t, "1.005 s", v[3].Got())
}

// A metric that was not measured is an error and not a pass. So is the metric of a run that is
// missing or did not finish.
func TestMissingValues(t *testing.T) {
	all := runs()
	cut := all[4].Flows
	cut[0].Finished, all[4].Finished = false, false
	delete(cut[0].Values, result.Completion)
	v := lab.Expectations(cells(t, `
  - {value: completion, where: {cc: reno, limit: 1bdp}, at_most: 2s, source: s, because: b}
  - {value: completion.median, where: {cc: reno, limit: 1bdp}, at_most: 2s, source: s, because: b}
  - {value: completion.max, where: {cc: reno, limit: 1bdp}, at_most: 2s, source: s, because: b}
  - {value: rtt, where: {cc: reno, limit: 1bdp}, at_most: 2s, source: s, because: b}`), all)
	require.Len(t, v, 4)
	assert.Equal(t, []bool{false, true, false, false}, passes(v))
	assert.Contains(t, v[0].Got(), "1 of 3 runs ended before their completion")
	assert.Contains(t, v[3].Got(), "was not measured")

	v = lab.Expectations(cells(t, `  - {value: "utilisation > 0.1", source: s}`), all[:3])
	assert.Equal(t, []bool{true, false, false, false}, passes(v))
	assert.Contains(t, v[1].Got(), "has not been run")
}

func passes(v []lab.Verdict) []bool {
	out := make([]bool, len(v))
	for i := range v {
		out[i] = v[i].Pass
	}
	return out
}

func TestQuantity(t *testing.T) {
	for _, c := range []struct {
		x    float64
		unit string
		want string
	}{
		{262.5e-3, "s", "262.5 ms"},
		{7449.2, "packets", "7449"},
		{0.96428, "", "0.9643"},
		{2.435e6, "bit/s", "2.435 Mbit/s"},
		{26400, "bytes", "26.4 kB"},
		{0, "s", "0 µs"},
		{-1.5, "s", "-1.5 s"},
		{1e-9, "", "0.000000001"},
	} {
		assert.Equal(t, c.want, lab.Quantity(c.x, formula.Unit(c.unit)), "%v %s", c.x, c.unit)
	}
}

// Goodput that still changes during the measurement is marked, because a longer run would have
// another value.
func TestUnsteadyGoodput(t *testing.T) {
	list := runs()
	for _, r := range list {
		v := r.Flows[0].Values
		v[result.Trend], v[result.Drift] = 10, 0.3
		if r.Cell == 1 {
			v[result.Trend] = -80
		}
	}
	v := lab.Expectations(cells(t, "  - {value: goodput, at_least: 1Mbit/s, source: a test}\n"+
		"  - {value: utilisation, at_least: 0.9, source: a test}"), list)
	require.Len(t, v, 8)
	for i := range v {
		assert.Equal(t, i == 1, strings.HasSuffix(v[i].Got(), ", not steady"), v[i].Got())
		assert.True(t, v[i].Pass)
	}
}
