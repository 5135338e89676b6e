package report

import (
	"fmt"
	"io"
	"runtime"
	"strings"
)

// WriteBenchmarks writes every run as a line in the format of Go's benchmarks, from which benchstat
// computes the variation. It omits the commit: benchstat would print a table for each one.
func (r *Report) WriteBenchmarks(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "goos: %s\ngoarch: %s\npkg: github.com/tidepool-net/tidepool/bench\ncpu: %s\n",
		runtime.GOOS, runtime.GOARCH, r.CPU)
	seen := map[string]bool{}
	for i := range r.Rows {
		row := &r.Rows[i]
		unit := unitWord(row.Unit)
		if ours := "case=" + word(row.Measured.Case) + "/stack=tidepool"; !seen[ours] {
			seen[ours] = true
			for run, v := range row.OursRuns {
				fmt.Fprintf(&b, "BenchmarkPeers/%s-%d 1 %g %s%s\n",
					ours, r.CPUs, v, unit, row.costs(run))
			}
		}
		for _, v := range row.TheirRuns {
			fmt.Fprintf(&b, "BenchmarkPeers/case=%s/stack=%s-%d 1 %g %s\n",
				word(row.Measured.Case), word(row.Peer), r.CPUs, v, unit)
		}
	}
	for _, f := range r.Facts {
		for _, v := range f.Runs {
			fmt.Fprintf(&b, "BenchmarkFigures/%s-%d 1 %g %s\n",
				word(f.Name), r.CPUs, v, unitWord(f.Unit))
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// costs formats the CPU time of both ends in one of our runs.
func (r *Row) costs(run int) string {
	m := &r.Measured
	if run >= len(m.Send) || m.Send[run] == 0 {
		return ""
	}
	return fmt.Sprintf(" %g send-ns/B %g receive-ns/B", m.Send[run], m.Receive[run])
}

// word makes a name one word of a benchmark line.
func word(s string) string {
	return strings.NewReplacer(" ", "_", ",", "", "/", "_").Replace(s)
}

func unitWord(s string) string { return strings.ReplaceAll(s, " ", "-") }
