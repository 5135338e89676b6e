// Command house prints the measures of this tree (lines, methods and fields of the largest types,
// the receive and send paths, packages) with their limits, and fails if one exceeds its limit. Its
// tests check every package against the table of imports in arrows.go and the rules of
// docs/style.md.
//
//	go run ./internal/ci/house
//	go run ./internal/ci/house -arrows    # after a change of arrows.go
//	go run ./internal/ci/house -rfcs      # lists code and tests of each RFC section
//	go test -json ./... | go run ./internal/ci/house -tally
package main

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"text/tabwriter"
)

// The limits. Methods and fields include those promoted from embedded types of this tree.
const (
	maxTypeMethods = 60
	maxTypeFiles   = 8 // number of files that declare its methods
	maxTypeFields  = 25
	maxPathFiles   = 10
	maxPathLines   = 2000
	maxWalkFiles   = 20 // of the receive path with the files that it calls
	maxWalkLines   = 3000
	maxWords       = 2500
	maxPackages    = 48
	maxGoLines     = 115_000
)

// measure is one figure of the tree. It fails if it exceeds its limit. If known is set, it fails
// only above known, a higher value that is tolerated until the limit is met.
type measure struct {
	what         string
	value, limit int
	known        int
}

// broken reports whether the figure fails.
func (m measure) broken() bool { return m.value > max(m.limit, m.known) }

func main() {
	arrows := flag.Bool("arrows", false, "write the table of imports into docs/ARCHITECTURE.md")
	rfcs := flag.Bool("rfcs", false, "write docs/rfcs.md")
	tests := flag.Bool("tally", false, "count the tests of go test -json on standard input")
	flag.Parse()
	var err error
	switch {
	case *arrows:
		err = writeArrows("docs/ARCHITECTURE.md")
	case *rfcs:
		err = writeRFCs()
	case *tests:
		err = tallyTests()
	default:
		err = reportTree()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "house:", err)
		os.Exit(1)
	}
}

// errBroken does not name the measure, because the table does.
var errBroken = errors.New("a measure is above its limit")

// reportTree prints the measures of this tree.
func reportTree() error {
	all, err := measures(os.DirFS("."))
	if err == nil && !report(os.Stdout, all) {
		err = errBroken
	}
	return err
}

// report prints the measures and reports whether all of them pass.
func report(w io.Writer, all []measure) bool {
	ok := true
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "MEASURE\tVALUE\tLIMIT\t")
	for _, m := range all {
		note := ""
		switch {
		case m.broken() && m.limit == 0:
			ok, note = false, "has no limit: give it one in internal/ci/house/areas.go"
		case m.broken():
			ok, note = false, "above the limit"
		case m.value > m.limit:
			note = fmt.Sprintf("above the limit; must not exceed %d", m.known)
		}
		fmt.Fprintf(table, "%s\t%d\t%d\t%s\n", m.what, m.value, m.limit, note)
	}
	table.Flush()
	return ok
}

// measures returns the figures of the tree at root.
func measures(root fs.FS) ([]measure, error) {
	files, err := collect(root)
	if err != nil {
		return nil, err
	}
	parsed, err := parse(files)
	if err != nil {
		return nil, err
	}
	packages := map[string]bool{}
	for _, s := range parsed {
		if !s.test && strings.HasPrefix(s.dir(), "internal/") {
			packages[s.dir()] = true
		}
	}
	functions := functions(parsed)
	all := append(sizes(parsed),
		measure{what: "packages below internal", value: len(packages), limit: maxPackages},
		measure{
			what: "lines of a function, 95th percentile", value: functions[len(functions)*95/100],
			limit: 40,
		})
	for _, f := range files {
		if f.path == "docs/ARCHITECTURE.md" {
			all = append(all, documented(f.text, parsed)...)
		}
	}
	all = append(all, largest(parsed)...)
	return all, nil
}

// core is the area of the library, the program and internal. Each other top-level folder is a
// separate area.
const core = "the core"

// sizes counts the lines of Go without tests: of the tree, of the core, and of each other area.
func sizes(files []source) []measure {
	lines := map[string]int{}
	for area := range areas {
		lines[area] = 0
	}
	for _, s := range files {
		area, _, _ := strings.Cut(s.dir(), "/")
		if area == "." || area == "cmd" || area == "internal" {
			area = core
		}
		if !s.test {
			lines[area] += s.lines()
		}
	}
	tree := measure{what: "lines of Go without tests", limit: maxGoLines}
	var out []measure
	for _, area := range slices.Sorted(maps.Keys(lines)) {
		m := measure{what: "of them in " + area, value: lines[area], limit: areas[area]}
		tree.value, tree.known = tree.value+m.value, tree.known+m.limit
		out = append(out, m)
	}
	slices.SortStableFunc(out, func(a, b measure) int {
		return cmp.Compare(strings.Count(b.what, core), strings.Count(a.what, core))
	})
	return append([]measure{tree}, out...)
}

// documented measures docs/ARCHITECTURE.md, and the files that it lists as the receive path and the
// send path.
func documented(page string, files []source) []measure {
	words := len(strings.Fields(page))
	all := []measure{{what: "words of docs/ARCHITECTURE.md", value: words, limit: maxWords}}
	for _, heading := range []string{"Receive path", "Send path"} {
		_, section, _ := strings.Cut(page, "\n### "+heading+"\n")
		section, _, _ = strings.Cut(section, "\n#")
		what, names := strings.ToLower(heading)+", ", pathFiles(section, false)
		all = append(all,
			measure{what: what + "files", value: len(names), limit: maxPathFiles},
			measure{
				what: what + "lines of its files", value: linesOf(names, files),
				limit: maxPathLines,
			})
		if heading == "Receive path" {
			names = pathFiles(section, true)
			all = append(all, measure{
				what: what + "with the files that it calls", value: len(names), limit: maxWalkFiles,
			}, measure{
				what: what + "lines of all these files", value: linesOf(names, files),
				limit: maxWalkLines,
			})
		}
	}
	return all
}

// linesOf counts the lines of the named files.
func linesOf(names []string, files []source) (lines int) {
	for _, name := range names {
		i := slices.IndexFunc(files, func(s source) bool { return s.path == name })
		if i < 0 {
			return maxGoLines // the page names a missing file
		}
		lines += files[i].lines()
	}
	return lines
}

// goFile matches a Go file that a document names in a row of a table.
var goFile = regexp.MustCompile("`([a-z0-9_/]+\\.go)`")

// pathFiles returns the files that the rows of the first table of a section name, each once. With
// called, it adds those that the paragraph after the table names.
func pathFiles(section string, called bool) []string {
	var all []string
	_, rows, _ := strings.Cut(section, "\n|")
	table, rest, _ := strings.Cut("|"+rows, "\n\n")
	paragraph, _, _ := strings.Cut(rest, "\n\n")
	for line := range strings.Lines(table + "\n" + paragraph) {
		if called || strings.HasPrefix(line, "|") {
			for _, m := range goFile.FindAllStringSubmatch(line, -1) {
				all = append(all, "internal/"+m[1])
			}
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// largest measures every type above a limit, and the largest type.
func largest(files []source) []measure {
	all := types(files)
	var out []measure
	top := measure{what: "methods of the largest type", limit: maxTypeMethods}
	for name, t := range all {
		methods, fields := promoted(all, name)
		full := short(name.dir) + "." + name.name
		top.value = max(top.value, len(methods))
		for _, m := range []measure{
			{what: "methods of " + full, value: len(methods), limit: maxTypeMethods},
			{what: "files with methods of " + full, value: t.filesOf(), limit: maxTypeFiles},
			{what: "fields of " + full, value: fields, limit: maxTypeFields},
		} {
			free := !t.structure || manyFields.MatchString(name.name)
			if m.value > m.limit && (!free || !strings.HasPrefix(m.what, "fields")) {
				out = append(out, m)
			}
		}
	}
	slices.SortFunc(out, func(a, b measure) int { return cmp.Compare(a.what, b.what) })
	return append([]measure{top}, out...)
}
