package emulation_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/lab/emulation"
	"github.com/tidepool-net/tidepool/internal/lab/plan"
	"github.com/tidepool-net/tidepool/internal/lab/result"
	"github.com/tidepool-net/tidepool/internal/lab/simulation"
)

const exchange = `name: exchange
duration: 20s
path:
  down: {delay: 2ms, rate: 50Mbit/s, loss: 3%}
  up: {delay: 2ms}
flows:
  - {protocol: rdt, objects: {pairs: 3, large: 100kB}, rdt: {adaptive: on}}
sweep:
  arm:
    rdt: {flows.0: {protocol: rdt, objects: {pairs: 3, large: 100kB}, rdt: {adaptive: on}}}
    one: {flows.0: {objects: {pairs: 3, large: 100kB}}}
    turns: {flows.0: {objects: {pairs: 3, large: 100kB, order: interleaved}}}
    many: {flows.0: {objects: {pairs: 3, large: 100kB, order: parallel, smallest_first: on}}}
`

// In real time, too, every arm receives all objects and reports when each was complete.
func TestObjectsInRealTime(t *testing.T) {
	o, cells := options(t, exchange)
	for i := range cells {
		got, record, err := o.Play(t.Context(), &cells[i], 0, true)
		require.NoError(t, err)
		want, _, err := simulation.Run(&cells[i], 0, simulation.Options{})
		require.NoError(t, err)
		require.True(t, got.Finished, got.Note)
		live, virtual := got.Flows[0].Values, want.Flows[0].Values
		name := cells[i].Set[0].Value
		assert.InDelta(t, virtual[result.Delivered], live[result.Delivered], 0, name)
		assert.InDelta(t, 6, live[result.ObjectsDone], 0, name)
		assert.Positive(t, live[result.Completion], name)
		for _, m := range []result.Metric{result.RTTMean, result.RTTP99, result.CwndMean} {
			assert.Equal(t, virtual[m] > 0, live[m] > 0, "%s: %s", name, m)
		}
		assert.Positive(t, live[result.Retransmits], name)
		assert.Greater(t, live[result.ServerData], 200., name)
		assert.GreaterOrEqual(t, live[result.ServerSent], live[result.ServerData], name)
		for _, m := range []result.Metric{result.ObjectMean, result.SmallMean, result.LargeLast} {
			assert.Positive(t, live[m], "%s: %s", name, m)
			assert.LessOrEqual(t, live[m], live[result.Completion], "%s: %s", name, m)
		}
		require.Len(t, record.Objects, 6, name)
		for _, one := range record.Objects {
			assert.True(t, one.Done, one.Name)
			assert.GreaterOrEqual(t, one.End, one.Start, one.Name)
		}
	}
}

// The error says why an experiment cannot run in real time, and how to fix it.
func TestQUICInRealTime(t *testing.T) {
	text := strings.Split(exchange, "flows:")[0] + "flows: [{cc: reno}, {protocol: quic}]\n"
	_, cells := options(t, text)
	x := &cells[0].Experiment
	require.NotNil(t, x.Flows[1].App.Objects)
	bad := emulation.CheckVirtual(x)
	require.NotNil(t, bad)
	assert.Equal(t, 1, bad.Flow)
	assert.Equal(t, "protocol", bad.Key)
	assert.ErrorContains(t, bad, "quic runs with --real only")
	bad = emulation.CheckReal(x, nil)
	require.NotNil(t, bad)
	assert.Equal(t, 1, bad.Flow)
	assert.ErrorContains(t, bad, "cd quic && go build -o ../bin/node-quic .")
	assert.Nil(t, emulation.CheckReal(x, map[plan.Protocol]string{plan.QUIC: "node-quic"}))

	text = strings.Split(exchange, "flows:")[0] + "flows: [{protocol: rdt, rdt: {push: on}}]\n"
	_, cells = options(t, text)
	assert.Nil(t, emulation.CheckVirtual(&cells[0].Experiment))
	bad = emulation.CheckReal(&cells[0].Experiment, nil)
	require.NotNil(t, bad)
	assert.Equal(t, "rdt", bad.Key)
}
