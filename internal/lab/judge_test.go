package lab_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/lab"
)

// The verdicts are the same whether runs are in a directory or in memory, and with one worker or
// several.
func TestJudge(t *testing.T) {
	folder := t.TempDir()
	file, dir := filepath.Join(folder, "short.yaml"), filepath.Join(folder, "dir")
	write(t, folder, map[string]string{
		"up.trace": "1\n2\n", "short.yaml": short + `trials: 3
sweep: {flows.0.cc: [reno, cubic]}
expect:
  - about: "the rate of the trace, in a text that needs more than one line"
    value: utilisation
    is: 0.5
    within: 1%
    published: "0.5"
    why: rounded
    source: the trace
    because: rounding
  - {value: utilisation(reno) < 2, source: own regression}
  - {value: utilisation(cubic) < 2, source: s}
`,
	})
	s := load(t, file)
	j, err := lab.Judge(t.Context(), s, lab.Options{Workers: 2})
	require.NoError(t, err)
	assert.Len(t, j.Verdicts, 4)
	assert.Equal(t, 2, j.Failed())
	assert.Equal(t, "1 of 3 checks hold, 1 own regression unchanged", j.Tally().String())

	r, err := lab.Run(t.Context(), s, lab.Options{Dir: dir})
	require.NoError(t, err)
	again, err := r.Judge(nil)
	require.NoError(t, err)
	var first, second, failed strings.Builder
	require.NoError(t, j.Print(&first, false))
	require.NoError(t, again.Print(&second, false))
	require.NoError(t, j.Print(&failed, true))
	assert.Equal(t, first.String(), second.String())
	assert.Contains(t, first.String(), "\nok     utilisation(cubic)")
	assert.Contains(t, failed.String(), "\nFAILS  the rate of the trace, in a")
	assert.Contains(t, failed.String(), "       published: 0.5\n       rounded\n"+
		"       source: the trace\n       tolerance: rounding\n")
	assert.Contains(t, first.String(), "regression checks, against earlier results of this "+
		"program:\n    what ")
	assert.NotContains(t, failed.String(), "ok ")
	for line := range strings.SplitSeq(first.String(), "\n") {
		assert.LessOrEqual(t, len([]rune(line)), 100)
	}

	r.Runs = r.Runs[1:]
	_, err = r.Judge(nil)
	require.ErrorIs(t, err, lab.ErrIncomplete)

	// If a run of the first cell is missing, only the other cell is judged.
	j, err = r.JudgeComplete()
	require.NoError(t, err)
	assert.Equal(t, "1 of 2 checks hold", j.Tally().String())
	assert.Equal(t, "1 check holds", lab.Tally{Checks: 1}.String())
}

// The page of a complete experiment is its report. Until then, the page has only the complete
// cells, and writing it changes nothing in the directory.
func TestPreview(t *testing.T) {
	folder := t.TempDir()
	file, dir := filepath.Join(folder, "short.yaml"), filepath.Join(folder, "dir")
	write(t, folder, map[string]string{
		"up.trace": "1\n2\n", "short.yaml": short + `trials: 3
sweep: {flows.0.cc: [reno, cubic]}
expect: [{value: utilisation(reno) < 2, source: s}, {value: utilisation(cubic) < 2, source: s}]
`,
	})
	r, err := lab.Run(t.Context(), load(t, file), lab.Options{Dir: dir, Records: 2})
	require.NoError(t, err)
	judged, err := r.Judge(nil)
	require.NoError(t, err)
	report, err := r.Draw(lab.DrawOptions{Judged: judged})
	require.NoError(t, err)
	want, err := os.ReadFile(report)
	require.NoError(t, err)
	before := files(t, dir)
	var whole, some strings.Builder
	require.NoError(t, r.Preview(&whole, nil))
	assert.Equal(t, string(want), whole.String())

	r.Runs = r.Runs[:4]
	require.NoError(t, r.Preview(&some, []string{"part 5: no"}))
	assert.Equal(t, before, files(t, dir))
	page := some.String()
	for _, text := range []string{
		`<meta http-equiv="refresh"`, "4 of 6 runs are complete.", "part 5: no", "1 met",
	} {
		assert.Contains(t, page, text)
		assert.NotContains(t, whole.String(), text)
	}
	assert.NotContains(t, page, "hash")
	assert.Contains(t, page, "3/3")
	assert.NotContains(t, page, "1/3")
}

// A published value that differs is printed next to each of its rows, and the reason is printed
// once.
func TestPublishedIsPrinted(t *testing.T) {
	folder := t.TempDir()
	write(t, folder, map[string]string{
		"up.trace": "1\n2\n", "short.yaml": short + `sweep: {flows.0.cc: [reno, cubic]}
expect:
  - {about: used, where: {cc: reno}, value: utilisation, below: 2, published: "0.3", why: guessed, source: s}
  - {about: used, where: {cc: cubic}, value: utilisation, below: 2, published: "0.4", why: guessed, source: s}
`,
	})
	j, err := lab.Judge(t.Context(), load(t, filepath.Join(folder, "short.yaml")), lab.Options{})
	require.NoError(t, err)
	var out strings.Builder
	require.NoError(t, j.Print(&out, false))
	assert.Equal(t, 1, strings.Count(out.String(), "published: 0.3\n"))
	assert.Equal(t, 1, strings.Count(out.String(), "published: 0.4\n"))
	assert.Equal(t, 1, strings.Count(out.String(), "guessed\n"))
	assert.Equal(t, 1, strings.Count(out.String(), "used"))
}
