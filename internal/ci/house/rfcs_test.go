package main

import (
	"io/fs"
	"os"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestClauses(t *testing.T) {
	at := func(rfc int, sections ...string) []clause {
		var all []clause
		for _, s := range sections {
			all = append(all, clause{rfc, s})
		}
		return all
	}
	for text, want := range map[string][]clause{
		"RFC 5961 §3.2: why":                    at(5961, "3.2"),
		"RFC\n// 3168 §6.1.1.1.":                at(3168, "6.1.1.1"),
		"(RFC 5961 §3.2, §4.2,\n// §5.2).":      at(5961, "3.2", "4.2", "5.2"),
		"RFC 6298 §5.4-5.6 says":                at(6298, "5.4", "5.6"),
		"RFC 9438 §4.2 to §4.5.":                at(9438, "4.2", "4.5"),
		"RFC 7323 §2.2 and §3.2, RFC 2018 §2-3": {{7323, "2.2"}, {7323, "3.2"}, {2018, "2"}, {2018, "3"}},
		"RFC 7323 appendix G: a tenth":          at(7323, "G"),
		"RFC 9293 §3.6 lets such an end":        at(9293, "3.6"),
		"RFC 9293 §3.8.3, R2":                   at(9293, "3.8.3"),
		"RFC 6056 says":                         at(6056, ""),
		"no RFC at all":                         nil,
	} {
		assert.Equal(t, want, clauses(text), text)
	}
	c, ok := ofName("TestRFC1122_4_2_2_13_DataAfterClose")
	assert.True(t, ok)
	assert.Equal(t, clause{1122, "4.2.2.13"}, c)
	_, ok = ofName("TestResets")
	assert.False(t, ok)
}

func generate(tree fs.FS) ([]byte, error) {
	x, err := read(tree)
	if err != nil {
		return nil, err
	}
	return x.page()
}

func tree(files map[string]string) fstest.MapFS {
	fs := fstest.MapFS{}
	for name, text := range files {
		fs[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return fs
}

func TestPage(t *testing.T) {
	page, err := generate(tree(map[string]string{
		"a/a.go": `// Package a is RFC 6056.
package a

// Conn is RFC 9293 §3.3.1's.
type Conn struct{}

func (c *Conn) Close() {
	// RFC 9293 §3.10.4: why
}

const (
	// x is RFC 9293 §3.2's.
	x = 1
	y = 2 // RFC 9293 §3.10
)
`,
		"a/a_test.go": `package a

// RFC 9293 §3.10.4: closing.
func TestClose(t *testing.T) { require.True(t, true, "RFC 7323 §5") }

func TestRFC9293_3_2(t *testing.T) {}
`,
		"a/testdata/close.pkt":      "// RFC 9293 §3.10.4: again\n0 close(3) = 0\n",
		"internal/tcp/drill/doc.go": "// Package drill shows RFC 1 §1.\npackage drill\n",
		".git/x.go":                 "not Go",
	}))
	require.NoError(t, err)
	assert.Equal(t, "# RFCs\n\n"+
		"Written by `make rfcs` from the citations in code, tests and scripts; not by hand.\n"+
		"A script `NAME` of `internal/tcp/testdata` runs with `go test ./internal/tcp -run Drill/NAME`.\n\n"+
		"3 RFCs are cited. Of 5 sections that code cites, 1 are named by no test.\n\n"+
		"No test names: 9293 §3.3.1.\n\n"+
		"## RFC 6056: Recommendations for Transport-Protocol Port Randomization\n\n"+
		"| section | code | tests |\n|---|---|---|\n"+
		"| as a whole | `a/a.go` |  |\n\n"+
		"## RFC 7323: TCP Extensions for High Performance\n\n"+
		"| section | code | tests |\n|---|---|---|\n"+
		"| §5 |  | `a/a_test.go`: TestClose |\n\n"+
		"## RFC 9293: Transmission Control Protocol (TCP)\n\n"+
		"| section | code | tests |\n|---|---|---|\n"+
		"| §3.2 | `a/a.go`: x | `a/a_test.go`: TestRFC9293_3_2 |\n"+
		"| §3.3.1 | `a/a.go`: Conn | **no test** |\n"+
		"| §3.10 | `a/a.go`: y |  |\n"+
		"| §3.10.4 | `a/a.go`: Conn.Close | `a/a_test.go`: TestClose<br>`a/testdata`: close |\n",
		string(page))
}

func TestUnknownRFC(t *testing.T) {
	_, err := generate(tree(map[string]string{"a.go": "// Package a is RFC 99999 §1.\npackage a\n"}))
	require.ErrorContains(t, err, "RFC 99999 is cited (a.go)")
}

// Every RFC that this tree cites has a title, and every cited section has a test or a reason. The
// page can be written.
func TestThisTree(t *testing.T) {
	x, err := read(os.DirFS("../../.."))
	require.NoError(t, err)
	require.NoError(t, x.check())
	page, err := x.page()
	require.NoError(t, err)
	assert.Contains(t, string(page), "## RFC 9293: Transmission Control Protocol (TCP)")
	again, err := x.page()
	require.NoError(t, err)
	assert.Equal(t, page, again, "the order is stable")
}

func TestSectionWithoutTest(t *testing.T) {
	x, err := read(tree(map[string]string{"a.go": "// Package a is RFC 9293 §3.2's.\npackage a\n"}))
	require.NoError(t, err)
	require.ErrorContains(t, x.check(), "no test names RFC 9293 §3.2, which a.go cites")
	assert.ErrorContains(t, x.check(), "untested has RFC 9002 §6.2.4, which a test names or no code cites")
}
