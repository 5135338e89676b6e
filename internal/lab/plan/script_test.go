package plan_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/lab/plan"
	"github.com/tidepool-net/tidepool/internal/tcp/congestion"
	starlark "github.com/tidepool-net/tidepool/internal/tcp/starlark"
)

// files are the files that an experiment names.
type files map[string]string

func (f files) load(name string) ([]byte, error) {
	text, ok := f[name]
	if !ok {
		return nil, errors.New(name + ": there is no such file")
	}
	return []byte(text), nil
}

const script = "def on_ack(state, ack): pass\ndef on_loss(state, loss): pass\n"

// A script's file name can be used wherever an algorithm's name can, also in a sweep.
func TestScript(t *testing.T) {
	f := parse(t, `
name: mine
path: {down: {rate: 10Mbit/s, delay: 10ms}}
flows: [{cc: my/own.star, window: 20pkt}, {cc: reno}]
sweep: {flows.1.cc: [tahoe, own.star]}
`)
	f.Load = files{"my/own.star": script, "own.star": script}.load
	cells, err := f.Cells()
	require.NoError(t, err)
	require.Len(t, cells, 2)
	first := cells[0].Flows
	require.NotNil(t, first[0].Script)
	assert.Equal(t, "own.star", first[0].Script.Name())
	assert.Equal(t, "own.star", first[0].TCP.Recovery.Congestion)
	assert.Equal(t, 20*1460, first[0].TCP.Recovery.FixedWindow)
	assert.Nil(t, first[1].Script)
	assert.Equal(t, "own.star-1", cells[1].Flows[0].Name)
	assert.Equal(t, "own.star-2", cells[1].Flows[1].Name)
	assert.NotNil(t, cells[1].Flows[1].Script)
}

// An error in a script shows its position in the script's file.
func TestScriptErrors(t *testing.T) {
	for _, tc := range []struct{ cc, want string }{
		{"none.star", `x.yaml:4:14: none.star: there is no such file; expected the file of a Starlark ` +
			"congestion controller\n    flows: [{cc: none.star}]\n                 ^^^^^^^^^"},
		{"a.star", "a.star:3:5: undefined: y\n    x = y\n        ^\n" +
			"a.star:4:5: undefined: zz\n    x = zz\n        ^"},
		{"b.star", "b.star: no function on_ack: must define def on_ack(state, ack)"},
		{"c.star", "c.star:1:8: floored division by zero\n    x = [1 // 0]\n           ^"},
		{"tahoo", `x.yaml:4:14: "tahoo" is not a congestion control (did you mean tahoe?); expected ` +
			"bbr, bbr3, cubic, fixed, newreno, none, reno, tahoe or a FILE.star"},
	} {
		f, err := plan.Parse("x.yaml", []byte("name: mine\npath:\n  down: {rate: 10Mbit/s, "+
			"delay: 10ms}\nflows: [{cc: "+tc.cc+"}]\n"))
		if err == nil {
			f.Load = files{
				"a.star": script + "x = y\nx = zz\n", "b.star": "x = 1\n", "c.star": "x = [1 // 0]\n",
			}.load
			_, err = f.Cells()
		}
		var errs plan.Errors
		require.ErrorAs(t, err, &errs, tc.cc)
		assert.Contains(t, err.Error(), tc.want)
	}
}

// A script's parameters can be set and swept like any other key. An error points to their value.
func TestParams(t *testing.T) {
	text := "name: mine\npath:\n  down: {rate: 10Mbit/s, delay: 10ms}\nflows: [{cc: own.star, params: {beta: 2}}]\n"
	own := "B = param('beta', 0.5)\ndef init(state, conn): state.cwnd = B * 10000\n" + script
	cells := func(change func(f *plan.File) error) ([]plan.Cell, error) {
		f, err := plan.Parse("x.yaml", []byte(text))
		require.NoError(t, err)
		if err := change(f); err != nil {
			return nil, err
		}
		f.Load = files{"own.star": own}.load
		return f.Cells()
	}
	all, err := cells(func(f *plan.File) error { return f.Sweep("flows.0.params.beta=0.7,3") })
	require.NoError(t, err)
	require.Len(t, all, 2)
	for i, want := range []int{7000, 30000} {
		c := all[i].Flows[0].Script.Begin(starlark.Hooks{}).New(congestion.Config{MSS: 10, InitialWindow: 10})
		assert.Equal(t, want, c.Cwnd())
	}
	for set, want := range map[string]string{
		"flows.0.params.betta=1": `--set: own.star: the script has no param("betta", …) (did you mean ` +
			"beta?); it has beta\n    flows.0.params.betta=1\n                         ^",
		"flows.0.params.beta=3ms": `"3ms" is not a parameter's value; expected a number such as 0.5`,
		"flows.0.params=7":        `"7" is not a script's params; expected a mapping such as {beta: 0.7}`,
		"flows.0.cc=reno": `x.yaml:4:32: params need a Starlark script, and cc is "reno"; expected cc: ` +
			"FILE.star, or no params",
	} {
		_, err := cells(func(f *plan.File) error { return f.Set(set) })
		assert.ErrorContains(t, err, want, set)
	}
}

// Parts of CUBIC, and of no other algorithm, can be disabled by name.
func TestPartsOfCubic(t *testing.T) {
	parse := func(flow string) error {
		f, err := plan.Parse("cubic.yaml", []byte("name: c\nduration: 1s\npath: {down: {delay: 1ms}, "+
			"up: same}\nflows:\n  - {"+flow+"}\n"))
		if err != nil {
			return err
		}
		cells, err := f.Cells()
		require.NoError(t, err)
		create := cells[0].Flows[0].TCP.Algorithms["cubic"]
		require.NotNil(t, create)
		assert.Equal(t, congestion.Cubic{NoFastConvergence: true, NoHyStart: true}.New(congestion.Config{MSS: 9}),
			create(congestion.Config{MSS: 9}))
		return nil
	}
	require.NoError(t, parse("cc: cubic, fast_convergence: off, hystart: off"))
	err := parse("cc: reno, reno_friendly: off")
	require.ErrorContains(t, err, "fast_convergence, reno_friendly and hystart are settings of CUBIC")
}
