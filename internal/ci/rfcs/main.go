// Command rfcs writes docs/rfcs.md: each section of an RFC that the code cites, with the functions
// that implement it and the tests that name it. It fails if an RFC is not in titles.txt, and if
// code cites a section that no test names, unless untested gives a reason.
//
// A citation is RFC 5961 §3.2, also as part of a list (RFC 5961 §3.2, §4.2 and §5.2), or a test's
// name, TestRFC5961_3_2_Reset. The command reads the comments of Go files, the strings of tests,
// and the scripts in testdata.
//
// The page names files and functions, without line numbers. It is not committed.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
)

func main() {
	root := flag.String("root", ".", "the module's root")
	flag.Parse()
	if err := write(*root); err != nil {
		fmt.Fprintln(os.Stderr, "rfcs:", err)
		os.Exit(1)
	}
}

func write(root string) error {
	x, err := read(os.DirFS(root))
	if err != nil {
		return err
	}
	page, err := x.page()
	if err != nil {
		return err
	}
	return errors.Join(os.WriteFile(filepath.Join(root, "docs", "rfcs.md"), page, 0o644), x.check())
}
