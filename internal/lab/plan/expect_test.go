package plan_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/lab/formula"
	"github.com/tidepool-net/tidepool/internal/lab/plan"
)

const swept = whole + `
sweep:
  flows.0.cc: [reno, cubic]
  path.down.queue: [0.1bdp, 1bdp]
expect:
`

// A file may have expectations in two forms.
func TestExpectations(t *testing.T) {
	for _, tt := range []struct {
		text, claim string
		within      float64
		absolute    bool
		want        plan.Expectation
	}{
		{text: "goodput > 1Mbit/s", claim: "goodput > 1Mbit/s"},
		{text: "rtt.max <= 262.5ms", claim: "rtt.max <= 262.5ms"},
		{
			text:  "utilisation = reno_utilisation(path.buffer) ± 1%",
			claim: "utilisation = reno_utilisation(path.buffer)", within: .01,
		},
		{text: "rtt = path.rtt ± 5ms", claim: "rtt = path.rtt", within: .005, absolute: true},
		{
			text:  "utilisation(cubic) > utilisation(reno) > 10%",
			claim: "utilisation(cubic) > utilisation(reno) > 10%",
		},
		{
			text:  "{value: goodput(1bdp), at_least: 2 * goodput(0.1bdp)}",
			claim: "goodput(1bdp) >= 2 * goodput(0.1bdp)",
		},
		{
			text: "{about: full, where: {cc: reno, queue: 1bdp}, value: utilisation, is: 1, " +
				"within: 2%, published: 0.97, why: slow start, source: RFC 5681, because: by eye}",
			claim: "utilisation = 1", within: .02,
			want: plan.Expectation{
				About: "full",
				Where: []plan.Setting{
					{Key: "flows.0.cc", Name: "cc", Value: "reno"},
					{Key: "path.down.queue", Name: "queue", Value: "1bdp"},
				},
				Published: "0.97", Why: "slow start", Source: "RFC 5681", Because: "by eye",
			},
		},
		{
			text: "{about: order, where: {flows.0.cc: reno}, " +
				"value: goodput(1bdp) > goodput(0.1bdp) > 0}",
			claim: "goodput(1bdp) > goodput(0.1bdp) > 0",
			want: plan.Expectation{
				About: "order", Where: []plan.Setting{{Key: "flows.0.cc", Name: "cc", Value: "reno"}},
			},
		},
		{text: "{value: rtt.max, below: 1s}", claim: "rtt.max < 1s"},
	} {
		text := tt.text
		switch {
		case !strings.HasPrefix(text, "{"):
			text = `{value: "` + text + `", source: theory, because: rounding}`
		case !strings.Contains(text, "source"):
			text = strings.TrimSuffix(text, "}") + ", source: theory, because: rounding}"
		}
		if tt.want.Source == "" {
			tt.want.Source, tt.want.Because = "theory", "rounding"
		}
		f := parse(t, swept+"  - "+text+"\n")
		cells, err := f.Cells()
		require.NoError(t, err, tt.text)
		require.Len(t, cells, 4)
		tt.want.Line = 9
		for _, c := range cells {
			require.Len(t, c.Expect, 1)
			got := c.Expect[0]
			assert.Equal(t, tt.claim, got.Claim.String())
			assert.InDelta(t, tt.within, got.Claim.Within, 1e-12, tt.text)
			assert.Equal(t, tt.absolute, got.Claim.Absolute, tt.text)
			got.Claim = nil
			assert.Equal(t, tt.want, got, tt.text)
		}
	}
}

// If a flag changes the sweep, expectations about missing cells are omitted; the others remain.
func TestExpectationsOfChangedFile(t *testing.T) {
	text := swept + "  - {value: goodput(cubic) > goodput(reno), source: s}\n" +
		"  - {value: goodput > 0, source: s}\n" +
		"  - {where: {cc: reno}, value: goodput, at_least: 1Mbit/s, source: s}\n"
	f := parse(t, text)
	require.NoError(t, f.Set("flows.0.cc=tahoe"))
	cells, err := f.Cells()
	require.NoError(t, err)
	require.Len(t, cells[0].Expect, 1)
	assert.Equal(t, 10, cells[0].Expect[0].Line)
	f = parse(t, text)
	require.NoError(t, f.Sweep("flows.0.cc=reno,tahoe"))
	cells, err = f.Cells()
	require.NoError(t, err)
	assert.Len(t, cells[0].Expect, 2)
}

// Formulas use the shortest unique name of a swept variable, and the constants of the path.
func TestNames(t *testing.T) {
	f := parse(t, whole+`
sweep:
  path.down.delay: [10ms, 20ms]
  path.up.delay: [30ms]
  flows.0.iw: [1, 2]
  flows.*.cc: [reno]
  p: {key: [path.down.loss, path.up.loss], values: [1%, 2%]}
  arm: {few: {trials: 3, path.down.queue: 3000B}, many: {trials: 30}}
`)
	cells, err := f.Cells()
	require.NoError(t, err)
	require.Len(t, cells, 16)
	last := &cells[13]
	assert.Equal(t, []plan.Setting{
		{Key: "path.down.delay", Name: "down.delay", Value: "20ms"},
		{Key: "path.up.delay", Name: "up.delay", Value: "30ms"},
		{Key: "flows.0.iw", Name: "iw", Value: "2"},
		{Key: "flows.*.cc", Name: "cc", Value: "reno"},
		{Key: "p", Name: "p", Value: "1%"},
		{Key: "arm", Name: "arm", Value: "many"},
	}, last.Set)
	assert.Equal(t, 30, last.Trials)
	assert.Equal(t, 3, cells[12].Trials)
	for name, want := range map[string]float64{
		"down.delay": .02, "up.delay": .03, "iw": 2, "p": .01, "path.rtt": .05, "path.rate": 1e6,
		"path.bdp": 6250, "path.loss": .01, "path.loss.up": .01, "mss": 1448, "mtu": 1500,
		"flows":    1,
		"duration": 60, "warmup": 0, "path.queue": 25000, "path.buffer": 4,
	} {
		got, err := last.Variable(name)
		require.NoError(t, err, name)
		assert.InDelta(t, want, got, 1e-12, name)
	}
	_, err = last.Variable("cc")
	require.EqualError(t, err, "cc is reno, which is not a number")
	_, err = last.Variable("nothing")
	require.EqualError(t, err, "this experiment has no nothing")
	for _, text := range []string{"goodput(20ms, 2%)", "iw + p * path.buffer", "rtt - down.delay"} {
		_, err = formula.Compile(text, f.Scope(last))
		assert.NoError(t, err, text)
	}
	f = parse(t,
		head+onePath+"flows: [{cc: reno}, {cc: reno}]\n"+
			"sweep: {flows.0.cc: [reno], flows.1.cc: [cubic]}\n")
	cells, err = f.Cells()
	require.NoError(t, err)
	assert.Equal(t, "flows.0.cc", cells[0].Set[0].Name)
	_, err = formula.Compile("goodput(flows.1.cc=cubic)", f.Scope(&cells[0]))
	assert.NoError(t, err)
}

// The mean loss of a path is known unless it depends on when or how many packets are sent.
func TestMeanLoss(t *testing.T) {
	for text, want := range map[string]float64{
		"every 100": .01, "2%": .02, "{gilbert: {mean: 2%, burst: 5}}": .02, "none": 0,
		"{share: 3%, correlation: 1%}": .03, "{on_off: {on: 9s, off: 1s}}": .1,
	} {
		x := one(t, down("loss: "+text))
		got, ok := x.Constant("path.loss")
		assert.True(t, ok)
		assert.InDelta(t, want, got, 1e-12, text)
	}
	x := one(t, down("loss: {at: [3]}"))
	_, ok := x.Constant("path.loss")
	assert.False(t, ok)
}
