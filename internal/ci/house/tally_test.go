package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestTally(t *testing.T) {
	const good = `{"Action":"run","Package":"p","Test":"TestA"}
{"Action":"output","Package":"p","Test":"TestA","Output":"    a_test.go:1: chatter\n"}
{"Action":"pass","Package":"p","Test":"TestA"}
{"Action":"output","Package":"p","Output":"PASS\n"}
{"Action":"output","Package":"p","Output":"ok  \tp\t0.1s\n"}
{"Action":"pass","Package":"p"}
`
	tests := map[string]struct {
		in   string
		out  string
		well bool
	}{
		"passing tests print nothing": {good, "ok  \tp\t0.1s\n1 passed, 0 failed, 0 skipped\n", true},
		"a failing test prints its output": {
			good + `{"Action":"output","Package":"q","Test":"TestB","Output":"    b_test.go:9: broken\n"}
{"Action":"fail","Package":"q","Test":"TestB"}
{"Action":"output","Package":"q","Output":"FAIL\n"}
{"Action":"fail","Package":"q"}
`,
			"ok  \tp\t0.1s\n    b_test.go:9: broken\nFAIL\n1 passed, 1 failed, 0 skipped\n", false,
		},
		"a package that does not build is one failure": {
			`{"ImportPath":"q","Action":"build-output","Output":"q.go:1: syntax error\n"}
{"ImportPath":"q","Action":"build-fail"}
{"Action":"output","Package":"q","Output":"FAIL\tq [build failed]\n"}
{"Action":"fail","Package":"q","FailedBuild":"q"}
`,
			"q.go:1: syntax error\nFAIL\tq [build failed]\n0 passed, 1 failed, 0 skipped\n", false,
		},
		"a panic is one failure, with the test's output": {
			`{"Action":"output","Package":"q","Test":"TestB","Output":"panic: BUG\n"}
{"Action":"output","Package":"q","Output":"FAIL\tq\t0.1s\n"}
{"Action":"fail","Package":"q"}
`,
			"panic: BUG\nFAIL\tq\t0.1s\n0 passed, 1 failed, 0 skipped\n", false,
		},
		"a slow test is named, without its subtests": {
			`{"Action":"pass","Package":"q","Test":"TestB/a","Elapsed":161.2}
{"Action":"pass","Package":"q","Test":"TestB","Elapsed":161.8}
`,
			"slow\tq.TestB\t162s\n2 passed, 0 failed, 0 skipped\n", true,
		},
		"a skip is counted": {
			`{"Action":"output","Package":"q","Test":"TestB","Output":"    b_test.go:9: only on Plan 9\n"}
{"Action":"skip","Package":"q","Test":"TestB"}
`,
			"0 passed, 0 failed, 1 skipped\n", true,
		},
		"a skip for a missing tool fails": {
			`{"Action":"output","Package":"q","Test":"TestB","Output":"    b_test.go:9: skip: needs tshark\n"}
{"Action":"skip","Package":"q","Test":"TestB"}
`,
			"must not be skipped here: q.TestB: skip: needs tshark\n" +
				"0 passed, 0 failed, 1 skipped\n", false,
		},
		"a test that ran may print a skip": {
			`{"Action":"output","Package":"q","Test":"TestB","Output":"> [!long] skip 'skip: needs X'\n"}
{"Action":"pass","Package":"q","Test":"TestB"}
`,
			"1 passed, 0 failed, 0 skipped\n", true,
		},
		"messages of the go command are printed": {
			"go: no such tool\n", "go: no such tool\n0 passed, 0 failed, 0 skipped\n", true,
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			tally := newTally(&out)
			require.NoError(t, tally.read(strings.NewReader(tt.in)))
			assert.Equal(t, tt.well, tally.close())
			assert.Equal(t, tt.out, out.String())
		})
	}
}
