//go:build linux

package lead

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
)

// Benchmark is a result line of `go test -bench`.
type Benchmark struct {
	Name    string             // without the prefix Benchmark and the suffix for GOMAXPROCS
	Metrics map[string]float64 // values by unit
}

// benchmarkLine matches the name and, after the iteration count, the metrics.
var benchmarkLine = regexp.MustCompile(`^Benchmark(\S+?)(?:-\d+)?\s+\d+\s(.*)$`)

// GoBench runs benchmarks of one package of the repository.
func GoBench(ctx context.Context, root, pkg, pattern, times string) ([]Benchmark, error) {
	c := exec.CommandContext(ctx, "go", "test", "-run", "^$", "-bench", pattern, "-benchmem",
		"-benchtime", times, "-timeout", "5m", pkg)
	c.Dir = root
	out, err := c.Output()
	if err != nil {
		return nil, fmt.Errorf("go test -bench %s %s: %w: %s", pattern, pkg, err, lastLine(out))
	}
	list := parseBenchmarks(out)
	if len(list) == 0 {
		return nil, fmt.Errorf("go test -bench %s %s printed no results", pattern, pkg)
	}
	return list, nil
}

// parseBenchmarks parses the output of `go test -bench`.
func parseBenchmarks(out []byte) (list []Benchmark) {
	for in := bufio.NewScanner(bytes.NewReader(out)); in.Scan(); {
		m := benchmarkLine.FindStringSubmatch(in.Text())
		if m == nil {
			continue
		}
		b := Benchmark{Name: m[1], Metrics: map[string]float64{}}
		fields := strings.Fields(m[2])
		for i := 0; i+1 < len(fields); i += 2 {
			if v, err := strconv.ParseFloat(fields[i], 64); err == nil {
				b.Metrics[fields[i+1]] = v
			}
		}
		list = append(list, b)
	}
	return list
}

func lastLine(text []byte) string {
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	return lines[len(lines)-1]
}
