package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
)

// errTests does not give the counts, because the last line of output does.
var errTests = errors.New("tests failed, or were skipped because a tool is missing")

// needs marks a test that is skipped because something is missing: t.Skip("skip: needs tshark").
const needs = "skip: needs"

// slow is the time in seconds from which the output names a test.
const slow = 20

// event is a line of go test -json; see go doc cmd/test2json.
type event struct {
	Action, Package, Test, Output string
	Elapsed                       float64 // in seconds
}

// tally reads the events of go test -json and prints the verdict of each package, slow tests, the
// output of failed tests, and "N passed, N failed, N skipped".
type tally struct {
	out                     io.Writer
	passed, failed, skipped int
	lacking                 []string               // reasons of skipped tests that needs marks
	output                  map[[2]string][]string // output of running tests, by package and test
	blamed                  map[string]bool        // packages with a failed test
}

// tallyTests tallies the events on standard input. It fails if a test failed, or was skipped
// because a tool is missing: CI has all tools.
func tallyTests() error {
	t := newTally(os.Stdout)
	if err := t.read(os.Stdin); err != nil {
		return err
	}
	if !t.close() {
		return errTests
	}
	return nil
}

func newTally(out io.Writer) *tally {
	return &tally{out: out, output: map[[2]string][]string{}, blamed: map[string]bool{}}
}

func (t *tally) read(r io.Reader) error {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var e event
		if json.Unmarshal(lines.Bytes(), &e) != nil {
			fmt.Fprintln(t.out, lines.Text()) // a message of the go command
			continue
		}
		t.add(e)
	}
	return lines.Err()
}

func (t *tally) add(e event) {
	key := [2]string{e.Package, e.Test}
	switch e.Action {
	case "build-output":
		fmt.Fprint(t.out, e.Output)
	case "output":
		t.output[key] = append(t.output[key], e.Output)
	case "pass", "fail", "skip":
		if e.Test == "" {
			t.endPackage(e)
		} else {
			t.endTest(e)
		}
		delete(t.output, key)
	}
}

func (t *tally) endTest(e event) {
	if e.Elapsed >= slow && !strings.Contains(e.Test, "/") {
		fmt.Fprintf(t.out, "slow\t%s.%s\t%.0fs\n", e.Package, e.Test, e.Elapsed)
	}
	switch e.Action {
	case "pass":
		t.passed++
	case "skip":
		t.skipped++
		// The test's own output may have the same text: scripts print such lines.
		for _, line := range t.output[[2]string{e.Package, e.Test}] {
			if i := strings.Index(line, needs); i >= 0 {
				t.lacking = append(t.lacking, e.Package+"."+e.Test+": "+strings.TrimSpace(line[i:]))
			}
		}
	case "fail":
		t.failed++
		t.blamed[e.Package] = true
		fmt.Fprint(t.out, strings.Join(t.output[[2]string{e.Package, e.Test}], ""))
	}
}

// endPackage prints the verdict. A package that failed without a failed test (a build error, a
// panic, a timeout) counts as one failure.
func (t *tally) endPackage(e event) {
	output := t.output[[2]string{e.Package, ""}]
	if e.Action == "fail" {
		if !t.blamed[e.Package] {
			t.failed++
			for key, lines := range t.output { // tests that were running
				if key[0] == e.Package && key[1] != "" {
					fmt.Fprint(t.out, strings.Join(lines, ""))
				}
			}
		}
		fmt.Fprint(t.out, strings.Join(output, ""))
		return
	}
	for _, line := range output {
		if strings.HasPrefix(line, "ok ") {
			fmt.Fprint(t.out, line)
		}
	}
}

// close prints the last line and reports whether no test failed or lacked a tool.
func (t *tally) close() bool {
	for _, l := range t.lacking {
		fmt.Fprintln(t.out, "must not be skipped here:", l)
	}
	fmt.Fprintf(t.out, "%d passed, %d failed, %d skipped\n", t.passed, t.failed, t.skipped)
	return t.failed == 0 && len(t.lacking) == 0
}
