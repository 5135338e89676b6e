package lnx_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/lnx"
)

const oneInterface = "interface if0 10.0.0.1/24 127.0.0.1:1\n"

func TestImpairLines(t *testing.T) {
	c, err := lnx.Parse("x.lnx", []byte("impair if0 in delay 5ms\n"+oneInterface+
		"impair if0 out  loss 2%\trate 1mbit # slow\n"))
	require.NoError(t, err)
	require.Len(t, c.Impair, 2)
	assert.Equal(t, []string{"if0", "in", "delay 5ms"},
		[]string{c.Impair[0].Iface, c.Impair[0].Way, c.Impair[0].Text()})
	assert.Equal(t, "loss 2% rate 1mbit", c.Impair[1].Text())
	again, err := lnx.Parse("x.lnx", c.Format())
	require.NoError(t, err)
	assert.Equal(t, c.Plain(), again.Plain())

	e := c.AtImpair(&c.Impair[1], len("loss 2% "), "rate", "no word", "another")
	assert.Equal(t, "x.lnx:3:25: no word; expected another\n"+
		"    impair if0 out  loss 2%\trate 1mbit # slow\n"+
		"                           \t^^^^", e.Error())
	e = c.AtImpair(&c.Impair[0], len("delay 5ms"), "", "something is missing", "")
	assert.Equal(t, lnx.Pos{Line: 1, Col: 24}, lnx.Pos{Line: e.Line, Col: e.Col})
}

func TestWrongImpairLines(t *testing.T) {
	for text, want := range map[string]string{
		"impair if1 loss 2%\n":                      `"if1" is not an interface of this file`,
		"impair if0 out\n":                          "the arguments of impair are missing",
		"impair if0\n":                              "impair",
		"impair if0 off\nimpair if0 in off\n":       "impair if0 in is already set on line 2",
		"link if0 loss 1%\nimpair if0 delay 1ms\n":  "already impaired by another line",
		"impair if0 out off\nimpair if0 both off\n": "impair if0 out is already set",
	} {
		_, err := lnx.Parse("x.lnx", []byte(oneInterface+text))
		require.Error(t, err, text)
		assert.Contains(t, err.Error(), want)
	}
}
