package lab_test

import (
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/lab"
	"github.com/tidepool-net/tidepool/internal/lab/result"
)

// The Python loader reads a run's results without pandas. It needs pandas only for data frames.
func TestPythonLoader(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("skip: needs python3")
	}
	s := study(2, 3)
	s.Play = came(func(cell, trial int, t *result.Trial) {
		t.Flows[0].Values[result.Goodput] = float64(1e6 + 1000*cell + trial)
		t.Whole[result.Jain] = 0.75
	})
	dir := t.TempDir()
	_, err = lab.Run(t.Context(), s, lab.Options{Dir: dir})
	require.NoError(t, err)
	folder, err := filepath.Abs("../../docs/python")
	require.NoError(t, err)
	c := exec.Command(python, "-B", "-c", `
import sys
sys.path.insert(0, sys.argv[2])
import tidepool_results as results
dir = sys.argv[1]
assert results.settings(dir) == [{"cc": "cc0"}, {"cc": "cc1"}], results.settings(dir)
rows = results.rows(dir, "trials.csv")
assert len(rows) == 2 * 3 * 3, len(rows)
got = [r["goodput"] for r in rows if r["cc"] == "cc1" and r["flow"] == "a"]
assert got == [1001000, 1001001, 1001002], got
whole = [r for r in rows if r["flow"] is None]
assert len(whole) == 6 and all(r["jain"] == 0.75 and r["finished"] is True for r in whole), whole
assert all(isinstance(r["hash"], str) or r["hash"] is None for r in rows), rows
means = [r for r in results.rows(dir, "summary.csv") if r["metric"] == "goodput" and r["flow"] == "a"]
assert [r["mean"] for r in means] == [1000001, 1001001] and means[0]["cc"] == "cc0", means
try:
    import pandas
except ImportError:
    pass
else:
    assert results.trials(dir).groupby("cc")["goodput"].mean()["cc1"] == 1001001
`, dir, folder)
	out, err := c.CombinedOutput()
	require.NoError(t, err, "%s", out)
}
