package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tidepool-net/tidepool/internal/diagnostic"
)

// treeName is the program's name in the source tree. Packages install it as tidepool.
const treeName = "node"

// goRun stands for the path of a program that `go run` has built.
const goRun = "go run ./cmd/node"

// called returns the program's name as the user typed it, for hints: bin/node, ./node, tidepool.
func called() string { return calledAs(invoked()) }

// invoked returns the name by which this program was executed. The name of a symbolic link such as
// mm-delay stands for a command, so invoked then returns the file's name.
func invoked() string {
	if isMahimahi(filepath.Base(os.Args[0])) {
		if file, err := os.Executable(); err == nil {
			return file
		}
	}
	return os.Args[0]
}

func calledAs(name string) string {
	switch {
	case baseName(name) == treeName && filepath.Base(name) != name && isTemporary(name):
		return goRun
	case isTest(name):
		return treeName
	}
	return diagnostic.ShellWord(name)
}

func isTest(name string) bool {
	return strings.HasSuffix(strings.TrimSuffix(filepath.Base(name), ".exe"), ".test")
}

// cached matches the directory of an executable in Go's build cache. From the second time on, `go
// run` executes the program there.
var cached = regexp.MustCompile(`/[0-9a-f]{64}-d/[^/]*$`)

func isTemporary(path string) bool {
	path = filepath.ToSlash(path)
	return strings.Contains(path, "/go-build") && strings.Contains(path, "/exe/") ||
		cached.MatchString(path)
}

// baseName returns the program's name without directory, for errors, manual pages and completions.
func baseName(path string) string {
	name := strings.TrimSuffix(filepath.Base(path), ".exe")
	if isTest(path) || name == "" || strings.ContainsAny(name, " \t") {
		return treeName
	}
	return name
}

func programName() string { return baseName(invoked()) }

func commandPath(c *cobra.Command) string {
	path := c.Name()
	for c = c.Parent(); c != nil; c = c.Parent() {
		path = c.Name() + " " + path
	}
	return path
}

// command matches the program's command lines in a text, such as `node net up`.
var command = regexp.MustCompile("(^|[\\s`'\"(])node( (?:attach|completion|ctl|demo|examine|help|" +
	"hub|in|lab|link|man|mm-[a-z]+|net|run|socks|trace|validate|version|FILE\\.lnx|--version)\\b)")

func named(text string) string { return namedAs(called(), text) }

func namedAs(name, text string) string {
	if name == treeName {
		return text
	}
	return command.ReplaceAllString(text, "${1}"+strings.ReplaceAll(name, "$", "$$")+"${2}")
}

func nameAll(c *cobra.Command, name string) {
	for _, text := range []*string{&c.Long, &c.Short, &c.Example} {
		*text = namedAs(name, *text)
	}
	c.LocalFlags().VisitAll(func(f *pflag.Flag) { f.Usage = namedAs(name, f.Usage) })
	for _, sub := range c.Commands() {
		nameAll(sub, name)
	}
}
