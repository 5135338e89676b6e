package examine_test

import (
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/examine"
	"github.com/tidepool-net/tidepool/internal/diagnostic"
)

const head = `rfc   RFC 9293 §3.5
level MUST
area  tcp
story S.
rule  R.
bug   B.
`

// Errors in check files have a position and name the expected text.
func TestErrors(t *testing.T) {
	for _, c := range []struct{ steps, want string }{
		{"sned S", `7:1: unknown line "sned" (did you mean send?); expected one of backoff, close,`},
		{"send X", `7:6: "X" is not a list of flags; expected letters of FSRP.UEW`},
		{"send S ttll 3", `7:8: unknown field "ttll" (did you mean ttl?); expected one of on, ttl,`},
		{"send S seq >3", `7:12: ">3" is neither a number nor a known value; expected a sum`},
		{"expect S within 3 ms", `7:19: unknown unit of time "ms"`},
		{"expect S seq next+nxt", `"nxt" is neither a number nor a known value (did you mean next?)`},
		{"expect S.", ""},
		{"expect S. win >=", `the comparison has no value`},
		{"no S.", `7:4: the line has no time; expected for 3 rtt`},
		{`printed "abc`, `7:9: the text is not closed; expected a second "`},
		{"transfer up 3", `7:10: unknown direction "up"; expected one of to or from`},
		{"transfer to 3 loss 2", `7:20: "2" is not a valid share; expected 0% to 50%`},
		{"send rip response route 10.0.0.0/33 cost 1", `7:25: not a prefix`},
		{"send rip response route net7 cost 1", `7:25: not a prefix`},
		{"send packet dst subject9", `7:17: not an address`},
		{"read many", `7:6: "many" is neither a number nor a known value`},
		{"write many", `7:7: not a number of bytes; expected 0 to 104857600, or a text in quotes`},
		{"keep Win win", `7:6: a reserved or invalid name; expected lower-case letters`},
		{"keep w wind", `7:8: unknown field "wind" (did you mean win?)`},
		{"send S times", `7:13: the line ends too early; expected how often`},
		{"expect S extra", `unknown field "extra"`},
		{"listen 80", `7:8: nothing may follow here; expected the end of the line`},
		{"level MAY", `7:1: the check has two lines level`},
		{"given ESTABLISH\nsend .", `7:7: unknown state "ESTABLISH"`},
		{"needs flying\nsend .", `7:7: unknown feature "flying"`},
		{"limit 3 rtt\nsend .", `7:9: the limit is not in seconds; expected such as 20 s`},
		{"send .\nneeds tcp", `8:1: needs must come before the steps`},
		{"# nothing", `7: the check has no steps`},
	} {
		files := fstest.MapFS{"a/b.check": {Data: []byte(head + c.steps)}}
		_, err := examine.Load(files)
		if c.want == "" {
			assert.NoError(t, err, c.steps)
			continue
		}
		require.Error(t, err, c.steps)
		assert.Contains(t, err.Error(), c.want)
		list := diagnostic.Errors{}
		assert.ErrorAs(t, err, &list, c.steps)
		for _, e := range list {
			assert.Equal(t, "a/b.check", e.File)
			assert.Positive(t, e.Line)
		}
	}
	_, err := examine.Load(fstest.MapFS{"x.check": {Data: []byte("send S")}})
	require.Error(t, err)
	assert.Contains(t, err.Error(), "the check has no rfc; expected a line rfc …")
}

// A file with several states results in a check for each.
func TestStates(t *testing.T) {
	list, err := examine.Load(fstest.MapFS{"x.check": {Data: []byte(head +
		"given ESTABLISHED CLOSE-WAIT\nsend .\n")}})
	require.NoError(t, err)
	require.Len(t, list, 2)
	assert.Equal(t, "x/CLOSE-WAIT", list[0].Name)
	assert.Equal(t, "x/ESTABLISHED", list[1].Name)
}

func FuzzParse(f *testing.F) {
	f.Add(head + "listen\nsend S seq next+1 mss 1460 <\nexpect S. ack 1 win >=3 within 2 rto\n")
	f.Add("printed \"")
	f.Fuzz(func(t *testing.T, text string) {
		list, errs := examine.Parse("x.check", []byte(text))
		if len(list) == 0 && len(errs) == 0 {
			t.Error("neither a check nor an error")
		}
		for _, e := range errs {
			if e.Error() == "" {
				t.Error("an error without text")
			}
		}
	})
}
