package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// `node help COMMAND` prints the same as `node COMMAND --help`. An unknown topic is a usage error.
// If the topic is a command of the node's shell, the error says so.
func TestHelpForTopics(t *testing.T) {
	t.Parallel()
	for _, words := range [][]string{nil, {"net", "up"}, {"completion", "bash"}} {
		status, got := ran(t, append([]string{"help"}, words...)...)
		assert.Zero(t, status, words)
		_, want := ran(t, append(words, "--help")...)
		assert.Equal(t, want, got)
	}
	for _, words := range []string{"lab help", "lab help trace info", "lab trace help info"} {
		status, got := ran(t, strings.Fields(words)...)
		assert.Zero(t, status, words)
		_, want := ran(t, append(slices.DeleteFunc(strings.Fields(words),
			func(w string) bool { return w == "help" }), "--help")...)
		assert.Equal(t, want, got)
	}
	for topic, want := range map[string]string{
		"bogus":     "node help: no command \"bogus\"; `node help` lists them\n",
		"net bogus": "node help: no command \"net bogus\"; `node help` lists them\n",
		"capture": "node help: \"capture\" is a command of a node's shell: " +
			"use `node ctl NODE help capture` or `node run FILE.lnx -c 'help capture'`\n",
		"sf": "node help: \"sf\" is a command of a node's shell: use `node ctl NODE help sf` " +
			"or `node run FILE.lnx -c 'help sf'`\n",
	} {
		status, text := ran(t, append([]string{"help"}, strings.Fields(topic)...)...)
		assert.Equal(t, 2, status, topic)
		assert.Equal(t, want, text)
	}
}

// The help, the manual pages and the documentation list the same exit statuses.
func TestExitStatuses(t *testing.T) {
	t.Parallel()
	_, help := ran(t, "--help")
	pages := t.TempDir()
	ran(t, "man", pages)
	for name, text := range map[string]string{
		"help":  help,
		"page":  fileText(t, pages, "node-run.1"),
		"shell": fileText(t, pages, "node-shell.1"),
	} {
		text = strings.ReplaceAll(text, `\-`, "-") // roff escapes hyphens
		assert.Contains(t, strings.Join(strings.Fields(text), " "),
			strings.Join(strings.Fields(statuses), " "), name)
	}
	table := fileText(t, "..", "..", "docs", "SHELL.md")
	for entry := range strings.SplitSeq(strings.ReplaceAll(statuses, "when ", ""), ",") {
		status, meaning, _ := strings.Cut(strings.TrimSpace(entry), " ")
		assert.Contains(t, table, "| "+status+" | "+meaning+" |")
	}
}

func fileText(t *testing.T, path ...string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(path...))
	require.NoError(t, err)
	return string(text)
}

// Tab completes the values of flags that accept one of a few keywords.
func TestTabAfterFlags(t *testing.T) {
	t.Parallel()
	idle := "net serve --state " + t.TempDir() + " --json nope x y" // no network runs in this directory
	for line, want := range map[string]string{
		"net graph --format":      "svg dot mermaid json",
		"run A.lnx --offload":     "auto gso mmsg plain",
		"run A.lnx --log-format":  "text json",
		"run A.lnx --log-level":   "debug info warn error",
		"lab run rip-x --dialect": "rip rip2 ripng",
		"help net":                "apply down exec export generate graph import names serve status up validate",
		idle:                      "",
	} {
		_, text := ran(t, append(append([]string{"__completeNoDesc"}, strings.Fields(line)...), "")...)
		words, _, _ := strings.Cut(text, ":")
		assert.Equal(t, want, strings.Join(strings.Fields(words), " "), line)
		assert.Contains(t, text, ":4\n", "no files: "+line)
	}
}
