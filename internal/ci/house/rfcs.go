package main

import (
	"bytes"
	_ "embed"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
)

//go:embed titles.txt
var titleList string

// writeRFCs writes docs/rfcs.md: each section of an RFC that the code cites, with the functions
// that implement it and the tests that name it. It fails if an RFC is not in titles.txt, and if
// code cites a section that no test names, unless untested gives a reason.
//
// A citation is RFC 5961 §3.2, also as part of a list (RFC 5961 §3.2, §4.2 and §5.2), or a test's
// name, TestRFC5961_3_2_Reset. They are read from the comments of Go files, the strings of tests,
// and the scripts in testdata.
func writeRFCs() error {
	x, err := read(os.DirFS("."))
	if err != nil {
		return err
	}
	page, err := x.page()
	if err != nil {
		return err
	}
	return errors.Join(os.WriteFile("docs/rfcs.md", page, 0o644), x.check())
}

// titles maps each RFC that may be cited to its title. It omits RFCs that were replaced by others.
func titles() map[int]string {
	all := map[int]string{}
	for line := range strings.Lines(titleList) {
		number, title, _ := strings.Cut(strings.TrimSpace(line), " ")
		all[atoi(number)] = title
	}
	return all
}

// untested gives the reason for each section that code cites without a test that names it.
var untested = map[clause]string{
	{6675, "2"}:     "its definition of a duplicate explains code elsewhere",
	{9002, "6.2.4"}: "a comparison with QUIC",
}

// check returns an error for each section that no test names and untested does not have, and for
// each entry of untested that is out of date.
func (x index) check() error {
	var all []error
	for _, c := range slices.SortedFunc(maps.Keys(x), compare) {
		if _, ok := untested[c]; x.untested(c) && !ok {
			all = append(all, fmt.Errorf("no test names RFC %d %s, which %s cites: name it in a "+
				"test, or give a reason in internal/ci/house/rfcs.go", c.rfc, section(c),
				strings.Join(x.places(c), ", ")))
		}
	}
	for _, c := range slices.SortedFunc(maps.Keys(untested), compare) {
		if x[c] == nil || !x.untested(c) {
			all = append(all, fmt.Errorf("internal/ci/house/rfcs.go: untested has RFC %d %s, "+
				"which a test names or no code cites: remove its line", c.rfc, section(c)))
		}
	}
	return errors.Join(all...)
}

// page returns the table of all citations.
func (x index) page() ([]byte, error) {
	known := titles()
	order := slices.SortedFunc(maps.Keys(x), compare)
	for _, c := range order {
		if known[c.rfc] == "" {
			return nil, fmt.Errorf("RFC %d is cited (%s), and is not in titles.txt",
				c.rfc, strings.Join(x.places(c), ", "))
		}
	}
	var b bytes.Buffer
	x.head(&b, order)
	rfc := 0
	for _, c := range order {
		if c.rfc != rfc {
			rfc = c.rfc
			fmt.Fprintf(&b, "\n## RFC %d: %s\n\n| section | code | tests |\n|---|---|---|\n",
				rfc, known[rfc])
		}
		tests := cell(x[c].tests)
		if x.untested(c) {
			tests = "**no test**"
		}
		fmt.Fprintf(&b, "| %s | %s | %s |\n", section(c), cell(x[c].code), tests)
	}
	return b.Bytes(), nil
}

// head writes the introduction and the totals.
func (x index) head(b *bytes.Buffer, order []clause) {
	rfcs := map[int]bool{}
	code := 0
	var missing []string
	for _, c := range order {
		rfcs[c.rfc] = true
		if len(x[c].code) > 0 {
			code++
		}
		if x.untested(c) {
			missing = append(missing, strings.TrimSpace(fmt.Sprintf("%d %s", c.rfc, section(c))))
		}
	}
	fmt.Fprintf(b, "# RFCs\n\n"+
		"Written by `make rfcs` from the citations in code, tests and scripts; not by hand.\n"+
		"A script `NAME` of `internal/tcp/testdata` runs with"+
		" `go test ./internal/tcp -run Drill/NAME`.\n\n"+
		"%d RFCs are cited. Of %d sections that code cites, %d are named by no test.\n",
		len(rfcs), code, len(missing))
	if len(missing) > 0 {
		fmt.Fprintf(b, "\nNo test names: %s.\n", strings.Join(missing, ", "))
	}
}

// untested reports whether code cites the clause, but no test names the clause or a section of it.
// A citation of a whole RFC needs no test.
func (x index) untested(c clause) bool {
	if len(x[c].code) == 0 || c.section == "" {
		return false
	}
	for d, by := range x {
		if len(by.tests) > 0 && d.covers(c) {
			return false
		}
	}
	return true
}

func (x index) places(c clause) []string {
	return slices.Concat(slices.Sorted(maps.Keys(x[c].code)), slices.Sorted(maps.Keys(x[c].tests)))
}

func section(c clause) string {
	if c.section == "" {
		return "as a whole"
	}
	return "§" + c.section
}

// cell formats files and the names in them.
func cell(by map[string][]string) string {
	var parts []string
	for _, file := range slices.Sorted(maps.Keys(by)) {
		names := slices.Sorted(slices.Values(by[file]))
		part := "`" + file + "`"
		if len(names) > 0 {
			part += ": " + strings.Join(names, ", ")
		}
		parts = append(parts, part)
	}
	return strings.Join(parts, "<br>")
}
