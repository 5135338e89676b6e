// Command rfcs writes docs/rfcs.md: each section of an RFC that the code cites,
// with the functions that implement it and the tests that name it. A section
// that code cites and no test names is marked and counted.
//
// A citation is RFC 5961 §3.2, also as part of a list (RFC 5961 §3.2, §4.2 and
// §5.2), or a test's name, TestRFC5961_3_2_Reset. It is read from the comments
// of Go files, in tests from strings too, and from the scripts in testdata.
//
// The names of files and functions are in the table, and no line numbers: it
// changes when what it says does.
package main

import (
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
	page, err := generate(os.DirFS(root))
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(root, "docs", "rfcs.md"), page, 0o644)
}
