package diagnostic_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/diagnostic"
)

// The text of an error contains the position, the message, and carets under the quoted text.
func TestErrorsText(t *testing.T) {
	long := strings.Repeat("x", 300) + "bad" + strings.Repeat("y", 300)
	for name, row := range map[string]struct {
		e    diagnostic.Error
		want string
	}{
		"a word": {
			diagnostic.Error{File: "f", Line: 2, Col: 3, Text: "cd", Msg: "m", Want: "w", Source: "abcde"},
			"f:2:3: m; expected w\n    abcde\n      ^^",
		},
		"a whole line": {diagnostic.Error{File: "f", Line: 2, Msg: "m", Want: "w"}, "f:2: m; expected w"},
		"what is missing": {
			diagnostic.Error{File: "f", Line: 1, Col: 6, Msg: "m", Source: "abcde"},
			"f:1:6: m\n    abcde\n         ^",
		},
		"tabs are repeated": {
			diagnostic.Error{File: "f", Line: 1, Col: 4, Text: "c", Msg: "m", Source: "\ta\tc"},
			"f:1:4: m\n    \ta\tc\n    \t \t^",
		},
		"what a terminal would obey": {
			diagnostic.Error{File: "f", Line: 1, Col: 2, Text: "b", Msg: "m", Source: "\x1bb\u2028\u202e"},
			"f:1:2: m\n    �b��\n     ^",
		},
		"more text than the line has": {
			diagnostic.Error{File: "f", Line: 1, Col: 2, Text: "bcdef", Msg: "m", Source: "abc"},
			"f:1:2: m\n    abc\n     ^^",
		},
		"a long line": {
			diagnostic.Error{File: "f", Line: 1, Col: 301, Text: "bad", Msg: "m", Source: long},
			"f:1:301: m\n    " + long[220:380] + "\n    " + strings.Repeat(" ", 80) + "^^^",
		},
		"a flag":        {diagnostic.Error{File: "--set", Col: 1, Text: "a", Msg: "m", Source: "a=b"}, "--set: m\n    a=b\n    ^"},
		"a file":        {diagnostic.Error{File: "f", Msg: "m"}, "f: m"},
		"a note":        {diagnostic.Error{File: "f", Line: 9, Col: 1, Msg: "m", Note: true}, "f:9:1: note: m"},
		"nothing there": {diagnostic.Error{File: "f", Line: 1, Col: 9, Msg: "m", Source: "a"}, "f:1:9: m\n    a\n     ^"},
	} {
		assert.Equal(t, row.want, row.e.Error(), name)
	}
	assert.Equal(t, `"a\nb"`, diagnostic.Quote("a\nb"))
	assert.Equal(t, `"`+strings.Repeat("é", 60)+`…"`, diagnostic.Quote(strings.Repeat("é", 61)))
}

// Notes are not errors, and errors.As finds each error in a list.
func TestErrors(t *testing.T) {
	note, bad := &diagnostic.Error{File: "f", Msg: "n", Note: true}, &diagnostic.Error{File: "f", Msg: "b"}
	require.NoError(t, diagnostic.Errors{note}.Err())
	err := diagnostic.Errors{note, bad}.Err()
	assert.EqualError(t, err, "f: b")
	require.ErrorIs(t, err, bad)
	got, ok := errors.AsType[*diagnostic.Error](err)
	assert.True(t, ok)
	assert.Same(t, bad, got)
	assert.EqualError(t, diagnostic.Errors{note, bad}, "f: note: n\nf: b")
}
