package formula_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/diagnostic"
	"github.com/tidepool-net/tidepool/internal/lab/formula"
)

// scope has the swept variables cc, p and limit, two constants, and two flows.
var scope = &formula.Scope{
	Variables: []formula.Variable{
		{Name: "cc", Values: []string{"reno", "cubic"}},
		{Name: "p", Values: []string{"1%", "10%"}},
		{Name: "limit", Values: []string{"0.5bdp", "1bdp", "10%"}},
		{Name: "path.rtt", Unit: formula.Seconds},
		{Name: "path.rate", Unit: formula.Rate},
	},
	Flows: []string{"early", "late"},
}

// env returns prepared values, and records the metrics that a formula requests.
type env struct {
	values map[string]float64
	asked  []formula.Ref
}

var errUnmeasured = errors.New("not measured")

func (e *env) Variable(name string) (float64, error) {
	v, ok := e.values[name]
	if !ok {
		return 0, errUnmeasured
	}
	return v, nil
}

func (e *env) Metric(r formula.Ref) (float64, error) {
	e.asked = append(e.asked, r)
	return e.Variable(string(r.Metric))
}

func TestValues(t *testing.T) {
	values := map[string]float64{
		"p": .01, "path.rtt": .1, "path.rate": 1e6, "goodput": 8e5, "rtt_mean": .12, "rtt_max": .2,
	}
	for _, tt := range []struct {
		text string
		want float64
		unit formula.Unit
	}{
		{"1", 1, formula.Pure},
		{"1 + 2 * 3", 7, formula.Pure},
		{"(1 + 2) * 3", 9, formula.Pure},
		{"2 ^ 3 ^ 2", 512, formula.Pure},
		{"-2 ^ 2", -4, formula.Pure},
		{"2^-1", .5, formula.Pure},
		{"7 - 2 - 1", 4, formula.Pure},
		{"8 / 2 / 2", 2, formula.Pure},
		{"1e-3", .001, formula.Pure},
		{".5", .5, formula.Pure},
		{"262.5ms", .2625, formula.Seconds},
		{"262.5 ms", .2625, formula.Unknown}, // an error, because of the space
		{"1.5s + 20us", 1.50002, formula.Seconds},
		{"3%", .03, formula.Pure},
		{"1.2Mbit", 1.2e6, formula.Rate},
		{"1.2Mbit/s", 1.2e6, formula.Rate},
		{"10MB/s", 8e7, formula.Rate},
		{"26400B", 26400, formula.Bytes},
		{"26.4kB + 1KiB", 27424, formula.Bytes},
		{"20pkt", 20, formula.Packets},
		{"2m", 120, formula.Seconds},
		{"4mbit", 4e6, formula.Rate},
		{"goodput", 8e5, formula.Rate},
		{"goodput / path.rate", .8, formula.Pure},
		{"goodput * path.rtt", 8e4, formula.Unknown},
		{"goodput / 2", 4e5, formula.Rate},
		{"2 * goodput", 16e5, formula.Rate},
		{"rtt", .12, formula.Seconds},
		{"rtt.max - rtt", .08, formula.Seconds},
		{"rtt_max", .2, formula.Seconds},
		{"1 - p", .99, formula.Pure},
		{"sqrt(16)", 4, formula.Unknown},
		{"cbrt(27) + 0s", 3, formula.Seconds},
		{"log2(8) + log10(100) + ln(exp(2))", 7, formula.Pure},
		{"floor(1.7) + ceil(1.2) + round(1.5)", 5, formula.Pure},
		{"abs(1s - 3s)", 2, formula.Seconds},
		{"min(3s, 200ms, rtt)", .12, formula.Seconds},
		{"max(1, 2)", 2, formula.Pure},
	} {
		if strings.Contains(tt.text, "2.5 ms") {
			_, err := formula.Compile(tt.text, scope)
			assert.ErrorContains(t, err, `"ms" is unexpected here`)
			continue
		}
		e, err := formula.Compile(tt.text, scope)
		require.NoError(t, err, tt.text)
		got, err := e.Eval(&env{values: values})
		require.NoError(t, err, tt.text)
		assert.InDelta(t, tt.want, got, 1e-9*max(1, tt.want), tt.text)
		assert.Equal(t, tt.unit, e.Unit(), tt.text)
		assert.Equal(t, tt.text, e.String())
	}
}

// A formula requests exactly these values from its environment.
func TestRefs(t *testing.T) {
	for _, tt := range []struct {
		text string
		want formula.Ref
	}{
		{"goodput", formula.Ref{Metric: "goodput", Statistic: "mean"}},
		{"goodput[0]", formula.Ref{Metric: "goodput", Flow: "0", Statistic: "mean"}},
		{`goodput["late"]`, formula.Ref{Metric: "goodput", Flow: "late", Statistic: "mean"}},
		{"goodput[late]", formula.Ref{Metric: "goodput", Flow: "late", Statistic: "mean"}},
		{"goodput.median", formula.Ref{Metric: "goodput", Statistic: "median"}},
		{"rtt.max", formula.Ref{Metric: "rtt_max", Statistic: "mean"}},
		{"rtt.max.max", formula.Ref{Metric: "rtt_max", Statistic: "max"}},
		{"rtt_p95.sd", formula.Ref{Metric: "rtt_p95", Statistic: "sd"}},
		{"queue", formula.Ref{Metric: "queue_mean", Statistic: "mean"}},
		{"utilisation(cubic)", formula.Ref{
			Metric: "utilisation", Statistic: "mean", Cell: []formula.Selector{{Name: "cc", Value: "cubic"}},
		}},
		{"utilisation[1](cubic, p=10%)", formula.Ref{
			Metric: "utilisation", Statistic: "mean", Flow: "1",
			Cell: []formula.Selector{{Name: "cc", Value: "cubic"}, {Name: "p", Value: "10%"}},
		}},
		{`utilisation("1bdp")[early]`, formula.Ref{
			Metric: "utilisation", Statistic: "mean", Flow: "early",
			Cell: []formula.Selector{{Name: "limit", Value: "1bdp"}},
		}},
	} {
		e, err := formula.Compile(tt.text, scope)
		require.NoError(t, err, tt.text)
		assert.Equal(t, []formula.Ref{tt.want}, e.Refs(), tt.text)
		asked := &env{values: map[string]float64{string(tt.want.Metric): 5}}
		got, err := e.Eval(asked)
		require.NoError(t, err)
		assert.InDelta(t, 5, got, 0)
		assert.Equal(t, e.Refs(), asked.asked)
	}
	e, err := formula.Compile("min(p, 3) + limit", scope)
	require.NoError(t, err)
	got, err := e.Eval(&env{values: map[string]float64{"p": 4, "limit": 2}})
	require.NoError(t, err)
	assert.InDelta(t, 5, got, 0)
	assert.Equal(t, []string{"p", "limit"}, e.Names())
	_, err = e.Eval(&env{})
	assert.ErrorIs(t, err, errUnmeasured)
	e, err = formula.Compile("1 / (p - p)", scope)
	require.NoError(t, err)
	_, err = e.Eval(&env{values: map[string]float64{"p": 1}})
	assert.ErrorContains(t, err, "is not a number")
}

// located returns the column and the message of an error.
func located(e *diagnostic.Error) string {
	message, _, _ := strings.Cut(e.Error(), "\n")
	return strings.Replace(message, "formula", fmt.Sprint(e.Col), 1)
}

// Every error has the right position and message.
func TestErrors(t *testing.T) {
	deep := strings.Repeat("(", 60) + "1" + strings.Repeat(")", 60)
	for _, tt := range []struct {
		text, want string
	}{
		{"", "1: a value is missing at the end; expected a number, a metric, a function or a swept key"},
		{"1 +", "4: a value is missing at the end; expected a number, a metric, a function or a swept key"},
		{"1 + é(", `5: "é" is neither a metric, a function nor a swept key`},
		{"1 ? 2", `3: "? 2" is unexpected here; expected an operator, or the end`},
		{"(1", "3: a parenthesis is not closed; expected )"},
		{"goodptu", `1: "goodptu" is neither a metric, a function nor a swept key (did you mean goodput?)`},
		{"rtt.mux", `1: "rtt.mux" is neither a metric, a function nor a swept key (did you mean rtt_max?)`},
		{"sqrt", "1: sqrt has no arguments; expected sqrt(x)"},
		{"sqrt()", "1: sqrt has 0 arguments; expected sqrt(x)"},
		{"sqrt(1, 2)", "9: too many arguments; expected sqrt(x)"},
		{"mathis(10ms)", "8: p is a value in s; expected a pure number"},
		{"cubic_window(1%, 5)", "18: rtt is a pure number; expected a value in s"},
		{
			"min(1s, 2B)", "9: one argument is a value in bytes and another is a value in s; " +
				"expected the same unit",
		},
		{
			"1s + 2B", "4: one side is a value in s and the other is a value in bytes; " +
				"expected the same unit",
		},
		{
			"rtt - 5", "5: one side is a value in s and the other is a pure number; " +
				"expected the same unit",
		},
		{"3lightyears", `1: "3lightyears" is not a number with a unit; expected one such as 262.5ms, 3% or 1.2Mbit/s`},
		{"goodput[2]", "9: there is no flow 2; expected an index from 0 to 1"},
		{"goodput[lat]", `9: no flow "lat" (did you mean late?); expected one of early, late`},
		{"goodput[]", "9: the brackets are empty; expected an index from 0, or a name"},
		{"goodput[0", `9: a bracket is not closed; expected goodput[0] or goodput["name"]`},
		{"goodput[0][1]", "11: a second flow in brackets; expected only one"},
		{"goodput(cubci)", `9: no cell with "cubci" (did you mean cubic?); expected one of reno, cubic, 1%, 10%, 0.5bdp, 1bdp, 10%`},
		{"goodput(10%)", `9: "10%" could be a value of p, limit; expected p=10%`},
		{"goodput(x=10%)", `9: "x" is not swept; expected one of cc, p, limit`},
		{"goodput(path.rtt=3)", `9: "path.rtt" is not swept; expected one of cc, p, limit`},
		{"goodput()", "9: the parentheses are empty; expected a swept value, such as cubic"},
		{"goodput(cubic", "9: a parenthesis is not closed; expected )"},
		{"goodput(cubic)(reno)", "15: a second cell in parentheses; expected only one"},
		{deep, "41: nested too deeply; expected 40 levels at most"},
		{strings.Repeat("1+", 1500) + "1", "1: the formula is too long; expected 2000 bytes at most"},
	} {
		_, err := formula.Compile(tt.text, scope)
		var e *diagnostic.Error
		require.ErrorAs(t, err, &e, tt.text)
		assert.Equal(t, tt.want, located(e), tt.text)
	}
	_, err := formula.Compile("1 + goodptu", scope)
	assert.EqualError(t, err, `formula: "goodptu" is neither a metric, a function nor a swept key (did you mean goodput?)
    1 + goodptu
        ^^^^^^^`)
}

func TestClaims(t *testing.T) {
	for _, tt := range []struct {
		text   string
		terms  []string
		ops    []formula.Operator
		within float64
		abs    bool
	}{
		{"rtt.max <= 262.5ms", []string{"rtt.max", "262.5ms"}, []formula.Operator{"<="}, 0, false},
		{
			"utilisation(cubic) > utilisation(reno) ≥ 0",
			[]string{"utilisation(cubic)", "utilisation(reno)", "0"},
			[]formula.Operator{">", ">="},
			0, false,
		},
		{
			"utilisation = reno_utilisation(0.1) ± 1%",
			[]string{"utilisation", "reno_utilisation(0.1)"},
			[]formula.Operator{"="},
			.01, false,
		},
		{"rtt == 3ms +- 10us", []string{"rtt", "3ms"}, []formula.Operator{"="}, 1e-5, true},
		{"jain ≈ 1 within 0.05", []string{"jain", "1"}, []formula.Operator{"="}, .05, true},
		{"retransmits = 0", []string{"retransmits", "0"}, []formula.Operator{"="}, 0, false},
		{"rtt > 0", []string{"rtt", "0"}, []formula.Operator{">"}, 0, false},
	} {
		c, err := formula.CompileClaim(tt.text, scope)
		require.NoError(t, err, tt.text)
		var terms []string
		for _, e := range c.Terms {
			terms = append(terms, e.String())
		}
		assert.Equal(t, tt.terms, terms)
		assert.Equal(t, tt.ops, c.Operators)
		assert.InDelta(t, tt.within, c.Within, 1e-12)
		assert.Equal(t, tt.abs, c.Absolute)
	}
	for _, tt := range []struct{ text, want string }{
		{"rtt", "4: the comparison has only one side; expected one of < <= = >= >"},
		{
			"rtt < 3", "5: one side is a value in s and the other is a pure number; " +
				"expected the same unit",
		},
		{"rtt < 3s ± 1%", "10: a tolerance needs the operator =; expected x = 3 ± 1%"},
		{"rtt = 3s ± x", "12: the tolerance is not a number; expected a tolerance such as 1% or 5ms"},
		{
			"rtt = 3s ± 1B",
			"12: the tolerance is a value in bytes and the right side is a value in s; " +
				"expected the same unit, or a percentage",
		},
		{"rtt = 3s ± 1% 2", `15: "2" is unexpected here; expected an operator, or the end`},
		{"1" + strings.Repeat("<1", 20), "24: too many comparisons"},
	} {
		_, err := formula.CompileClaim(tt.text, scope)
		var e *diagnostic.Error
		require.ErrorAs(t, err, &e, tt.text)
		assert.Equal(t, tt.want, located(e), tt.text)
	}
}

func TestHolds(t *testing.T) {
	c, err := formula.CompileClaim("1 < 2 <= 2 = 2 ± 10%", scope)
	require.NoError(t, err)
	assert.True(t, c.Holds([]float64{1, 2, 2, 2}))
	assert.True(t, c.Holds([]float64{1, 2, 2, 2.2}))
	assert.False(t, c.Holds([]float64{2, 2, 2, 2}))
	assert.False(t, c.Holds([]float64{1, 3, 2, 2}))
	assert.False(t, c.Holds([]float64{1, 2, 2, 2.3}))
	c, err = formula.CompileClaim("4s > 3s >= 1s = 1.5s ± 500ms", scope)
	require.NoError(t, err)
	assert.True(t, c.Holds([]float64{4, 1, 1, 1.5}))
	assert.False(t, c.Holds([]float64{4, 1, 1, 1.6}))
	assert.False(t, c.Holds([]float64{1, 1, 1, 1}))
}
