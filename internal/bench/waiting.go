package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
)

// benchmarkLine is a line of `go test -bench` whose metrics are a median and a 99th percentile.
var benchmarkLine = regexp.MustCompile(
	`^Benchmark(\S+?)(?:-\d+)?\s+\d+\s.*?([\d.]+) p50-µs\s+([\d.]+) p99-µs`)

// waiting asks the node's own benchmarks how late its loop wakes up, for the way of waiting that it
// uses here.
func waiting(ctx context.Context, b *bench) ([]sample, error) {
	count := strconv.FormatInt(b.size(2000, 200), 10) + "x"
	c := exec.CommandContext(ctx, "go", "test", "-run", "^$",
		"-bench", "^Benchmark(Wakeup|TimerError)$", "-benchtime", count, "-timeout", "2m",
		"github.com/tidepool-net/tidepool/internal/node")
	out, err := c.Output()
	if err != nil {
		return nil, fmt.Errorf("go test -bench: %w: %s", err, lastLine(out))
	}
	samples := parseWaiting(out)
	if len(samples) == 0 {
		return nil, errors.New("go test -bench: no figures in what it printed")
	}
	return samples, nil
}

// parseWaiting reads what `go test -bench` printed.
func parseWaiting(out []byte) []sample {
	var samples []sample
	for in := bufio.NewScanner(bytes.NewReader(out)); in.Scan(); {
		m := benchmarkLine.FindStringSubmatch(in.Text())
		if m == nil || !strings.Contains("/"+m[1]+"/", "/best/") {
			continue
		}
		what := strings.ReplaceAll(m[1], "/best", "")
		what = strings.Replace(what, "Wakeup/", "wake-up by ", 1)
		what = strings.Replace(what, "TimerError/", "lateness of ", 1)
		median, err := strconv.ParseFloat(m[2], 64)
		if err != nil {
			continue
		}
		samples = append(samples, sample{
			what: what, value: median, unit: "µs", note: "99th percentile " + m[3] + " µs",
		})
	}
	return samples
}

func lastLine(text []byte) string {
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	return lines[len(lines)-1]
}
