//go:build unix

package e2e_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	ci "github.com/tidepool-net/tidepool/internal/ci/testenv"
)

// documented lists the pages whose commands are tested.
var documented = []string{
	"README.md", "CONTRIBUTING.md", "docs/*.md", "docs/learn/*.md", "tutorial/*.md", "nets/*.md",
	"nets/*/*.md",
}

// notRun lists the commands that the long variant skips, each with a reason.
var notRun = []struct{ pattern, why string }{
	{`^sudo |^systemctl |^install |^tidepool ctl /run/`, "needs root"},
	{`^make install`, "installs into the system"},
	{`^make playground|http\.server`, "needs minutes, and has no end; make web-test builds the page"},
	{`host\.lnx|^socat |^ss |^curl http://10\.|^traceroute |^node run nets/tun/`, "needs a TUN device"},
	{`^iperf3 `, "needs a server of another program"},
	{`wireshark|tshark`, "needs Wireshark"},
	{`kubectl apply|--on kubernetes|--claim`, "needs a Kubernetes cluster"},
	{`^go get `, "needs the published module"},
	{`^go test \./\.\.\.`, "this test is a part of it"},
	{`^make bench|^benchstat |^git show |^before=`, "takes minutes; make bench runs it"},
	{`^bin/node hub|^node hub`, "has no end, or needs a running hub; TestHub runs them"},
	{`examine --profile course|examine --(tun|checks)`, "needs a node of the reader's own, or root"},
	{`lab check`, "takes minutes; .ci/run lab runs it"},
	{`^cd (quic|adapters) |lab run rdt-real`, "builds another module, and takes minutes"},
	{`^curl -N|/events$`, "has no end"},
	{` watch -n 1| capture (if0|all 'ip6)| trace tcp port`, "has no end"},
	{`^bin/node trace a\.pcapng`, "needs a capture of the reader's own"},
	{`echo it answers$|a-b-c/B impair|trace page\.pcapng`, "needs the commands above it"},
	{`^python3 -m pip|lab judge`, "needs ns-3, a download"},
	{`^(bin/)?node (in|link|mm-[a-z]+) |lab log up`, "needs user namespaces; other tests run such commands"},
	{` socks A$|127\.0\.0\.1:1080`, "needs a browser; internal/portforward tests the proxy"},
	{`tutorial/tahoe\.yaml.*mine\.star`, "needs the reader's own file"},
}

// endless matches commands that run until the page ends.
var endless = regexp.MustCompile(` net serve( class .*)?$| recvfile `)

// documentCommand is a command line of a page.
type documentCommand struct {
	page string
	line int
	text string
	node string // the node whose shell runs it; empty: the system's shell
	code bool   // it is code within a sentence

	shown []string // output that the page shows
}

func (c documentCommand) String() string { return fmt.Sprintf("%s:%d: %s", c.page, c.line, c.text) }

var (
	programs = regexp.MustCompile(`^(bin/node|node|tidepool|go|make|cd|mkdir|cp|printf|curl|socat|ss|sudo|` +
		`systemctl|install|chromium|git|head|benchstat|iperf3|traceroute|source|python3|[A-Za-z0-9_]+=\S+)( |$)`)
	prompt  = regexp.MustCompile(`^(?:(\$)|([A-Z][0-9]*)>) `)
	columns = regexp.MustCompile(`\s{3,}((?:\$|[A-Z][0-9]*>) )`)
	inCode  = regexp.MustCompile("`((?:bin/)?node [^`]+)`")
	netLine = regexp.MustCompile(`^node \S+ localhost$`) // a line of a .net file
)

// commandsOf reads a page's commands. A fenced block without a language holds only commands, unless
// it begins with a prompt: then lines without a prompt are output.
func commandsOf(t *testing.T, page string) (list []documentCommand) {
	t.Helper()
	text, err := os.ReadFile(Path(page))
	require.NoError(t, err)
	in, skipped, prompted, first := false, false, false, false
	for i, line := range strings.Split(string(text), "\n") {
		if strings.HasPrefix(line, "```") {
			in, skipped, first, prompted = !in, line != "```", true, false
			continue
		}
		if !in {
			for _, m := range inCode.FindAllStringSubmatch(line, -1) {
				if !netLine.MatchString(m[1]) {
					list = append(list, documentCommand{page: page, line: i + 1, text: m[1], code: true})
				}
			}
			continue
		}
		if skipped {
			continue
		}
		if first {
			prompted, first = prompt.MatchString(line), false
		}
		raw := line
		line = withoutComment(line)
		for part := range strings.SplitSeq(columns.ReplaceAllString(line, "\n$1"), "\n") {
			c := documentCommand{page: page, line: i + 1, text: strings.TrimSpace(part)}
			if m := prompt.FindStringSubmatch(c.text); m != nil {
				c.text, c.node = c.text[len(m[0]):], m[2]
			} else if prompted || c.text == "" {
				if n := len(list); prompted && list[n-1].node == "" && c.text != "" {
					list[n-1].shown = append(list[n-1].shown, raw)
				}
				continue
			}
			list = append(list, c)
		}
	}
	return list
}

// withoutComment removes a comment from a line of the system's shell.
func withoutComment(line string) string {
	quote := rune(0)
	for i, r := range line {
		switch {
		case quote != 0 && r == quote:
			quote = 0
		case quote == 0 && (r == '\'' || r == '"'):
			quote = r
		case quote == 0 && r == '#' && (i == 0 || line[i-1] == ' '):
			return line[:i]
		}
	}
	return line
}

// simple splits a line at its pipes and operators into simple commands.
func simple(line string) (list []string) {
	quote, from := rune(0), 0
	for i, r := range line {
		switch {
		case quote != 0 && r == quote:
			quote = 0
		case quote == 0 && (r == '\'' || r == '"'):
			quote = r
		case quote == 0 && strings.ContainsRune("|&;<>", r):
			list = append(list, strings.TrimSpace(line[from:i]))
			from = i + 1
		}
	}
	return append(list, strings.TrimSpace(line[from:]))
}

// wordsOf splits a simple command into words.
func wordsOf(text string) (words []string) {
	word, quote, open := "", rune(0), false
	for _, r := range text + " " {
		switch {
		case quote != 0 && r == quote:
			quote = 0
		case quote == 0 && (r == '\'' || r == '"'):
			quote, open = r, true
		case quote == 0 && r == ' ':
			if open {
				words = append(words, word)
			}
			word, open = "", false
		default:
			word, open = word+string(r), true
		}
	}
	return words
}

func pages(t *testing.T) (list []string) {
	t.Helper()
	for _, pattern := range documented {
		found, err := filepath.Glob(Path(filepath.FromSlash(pattern)))
		require.NoError(t, err)
		require.NotEmpty(t, found, pattern)
		for _, name := range found {
			page, err := filepath.Rel(Path(), name)
			require.NoError(t, err)
			list = append(list, filepath.ToSlash(page))
		}
	}
	return list
}

// TestDocumentedCommandsExist checks that every command and flag on the pages is known, and that
// the files of the tree that they name exist. TestDocumentedCommandsRun runs the commands.
func TestDocumentedCommandsExist(t *testing.T) {
	ci.NeedLong(t) // starts a process for each of hundreds of commands
	t.Parallel()
	topics := map[string]documentCommand{}
	tried := map[string]bool{}
	for _, page := range pages(t) {
		for _, c := range commandsOf(t, page) {
			if c.node != "" {
				topics[strings.Fields(c.text)[0]] = c
				continue
			}
			assert.True(t, c.code || programs.MatchString(c.text), "%v\nis not a known command; a block "+
				"without commands needs a language: ```text", c)
			for _, text := range simple(strings.TrimPrefix(strings.ReplaceAll(c.text, `\|`, "|"), "sudo ")) {
				words := wordsOf(text)
				for len(words) > 1 && assignment.MatchString(words[0]) {
					words = words[1:]
				}
				if len(words) == 0 || !slices.Contains([]string{"bin/node", "node", "tidepool"}, words[0]) {
					continue
				}
				if !tried[text] {
					tried[text] = true
					checkWords(t, c, words[1:], topics)
				}
			}
		}
	}
	checkTopics(t, topics)
}

// checkWords makes the program parse a command line without running it. It collects commands of a
// node's shell in topics.
func checkWords(t *testing.T, c documentCommand, words []string, topics map[string]documentCommand) {
	t.Helper()
	for _, word := range words {
		folder, _, _ := strings.Cut(word, "/")
		if slices.Contains([]string{"nets", "tutorial", "docs", "judge"}, folder) && strings.Contains(word, "/") {
			word, _, _ = strings.Cut(word, ":") // without the host of an address HOST:PATH
			found, err := filepath.Glob(Path(filepath.FromSlash(word)))
			require.NoError(t, err, "%v", c)
			assert.NotEmpty(t, found, "%v: there is no %s", c, word)
		}
	}
	words = slices.DeleteFunc(words, func(w string) bool { return w == "…" || w == "..." })
	ofShell := 2 // index of a command for a node's shell
	if len(words) > 1 && words[1] == "exec" {
		ofShell = 3
	}
	switch {
	case words[0] == "in" || words[0] == "link" || strings.HasPrefix(words[0], "mm-"):
		words = []string{words[0], "--help"} // the other words belong to another program
	case len(words) > ofShell && (words[0] == "ctl" || ofShell == 3):
		if word := words[ofShell]; word != strings.ToUpper(word) {
			topics[strings.Fields(word)[0]] = c
		}
		words = append(slices.Clone(words[:ofShell-1]), "--help")
	case len(words) > 2 && words[0] == "lab" && words[1] == "run" && words[2] != strings.ToUpper(words[2]) &&
		// not a file that the reader writes, a built-in experiment, or one with another program
		!strings.Contains(strings.Join(words, " "), "mine") && !strings.HasPrefix(words[2], "rip-") && words[2] != "rdt-real":
		// --dry-run reads the experiment and its changes
		words = append(slices.Clone(words), "--dry-run")
	default:
		words = append(slices.Clone(words), "--help")
	}
	cmd := Command(words...)
	cmd.Dir = Path()
	out, err := cmd.CombinedOutput()
	assert.NoError(t, err, "%v\n%.300s", c, out)
}

// checkTopics asks a node's shell for help on every command.
func checkTopics(t *testing.T, topics map[string]documentCommand) {
	t.Helper()
	args := []string{"run", Path("nets", "a-b", "A.lnx"), "--keep-going"}
	net := CopyNetwork(t, "nets", "a-b")
	args[1] = net.File("A")
	for topic := range topics {
		args = append(args, "-c", "help "+topic)
	}
	var talk bytes.Buffer
	cmd := Command(args...)
	cmd.Stderr = &talk
	err := cmd.Run()
	assert.NoError(t, err, talk.String())
	for topic, c := range topics {
		assert.NotContains(t, talk.String(), fmt.Sprintf("no command %q", topic), "%v", c)
	}
}

// TestDocumentedOutput checks the comparison of a page's output with a command's.
func TestDocumentedOutput(t *testing.T) {
	t.Parallel()
	const printed = "PING 10.1.0.2\n64 bytes: ttl=63 time=0.54 ms\n\nrtt 1 ms\n"
	for shown, missing := range map[string]string{
		"PING 10.1.0.2|64 bytes: ttl=63 time=… ms|…": "",
		"64 bytes: ttl=63 …|rtt … ms":                "",
		"64 bytes: ttl=64 time=… ms":                 "64 bytes: ttl=64 time=… ms",
		"64 bytes":                                   "64 bytes",
		"rtt 1 ms|PING 10.1.0.2":                     "PING 10.1.0.2",
		"PING 10.1.0.2|PING 10.1.0.2":                "PING 10.1.0.2",
	} {
		assert.Equal(t, missing, firstMissing(strings.Split(shown, "|"), printed), shown)
	}
}

// TestDocumentedCommandsRun runs the commands of each page's blocks in order, in a copy of the
// tree. It skips the commands of nodes' shells, which need several terminals.
func TestDocumentedCommandsRun(t *testing.T) {
	ci.NeedLong(t)
	tree := t.TempDir()
	for _, part := range []string{
		"batch", "cmd", "docs", "examine", "hub", "interchange", "internal", "judge", "nets", "netns",
		"packaging", "playground", "tutorial",
	} {
		require.NoError(t, os.CopyFS(filepath.Join(tree, part), os.DirFS(Path(part))))
	}
	for _, pattern := range []string{"*.go", "go.*", "Makefile"} {
		names, err := filepath.Glob(Path(pattern))
		require.NoError(t, err)
		for _, name := range names {
			text, err := os.ReadFile(name)
			require.NoError(t, err)
			require.NoError(t, os.WriteFile(filepath.Join(tree, filepath.Base(name)), text, 0o644))
		}
	}
	require.NoError(t, os.MkdirAll(filepath.Join(tree, "bin"), 0o755))
	program, err := os.ReadFile(Command().Path)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(tree, "bin", "node"), program, 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(tree, "FILE"), bytes.Repeat([]byte("tide"), 1e5), 0o644))
	used := map[string]bool{}
	ran := 0
	for _, page := range pages(t) {
		t.Run(page, func(t *testing.T) {
			ran++
			runPage(t, tree, page, used)
		})
	}
	for _, r := range notRun {
		assert.True(t, used[r.pattern] || ran < len(pages(t)), "no page contains %q any more", r.pattern)
	}
}

// runPage runs a page's commands. used records which rules skipped a command.
func runPage(t *testing.T, tree, page string, used map[string]bool) {
	t.Helper()
	// the default is too long for a socket's path
	state, err := os.MkdirTemp("", "tide") //nolint:usetesting // its own is too long for a socket
	require.NoError(t, err)
	s := &pageShell{t: t, tree: tree, state: state}
	defer s.end()
	for _, c := range commandsOf(t, page) {
		if c.node != "" || c.code {
			continue
		}
		i := slices.IndexFunc(notRun, func(r struct{ pattern, why string }) bool {
			return regexp.MustCompile(r.pattern).MatchString(c.text)
		})
		if i >= 0 {
			used[notRun[i].pattern] = true
			t.Logf("%v: not run: %s", c, notRun[i].why)
			continue
		}
		s.run(c)
	}
}

// pageShell runs the commands of one page with the variables that earlier commands have set.
type pageShell struct {
	t           *testing.T
	tree, state string
	assignments string
	running     []*exec.Cmd
}

// longest is how long one command may run. Commands without an end belong in notRun. `go run`
// compiles for 75 s of CPU time, which takes minutes on a busy machine.
const longest = 15 * time.Minute

func (s *pageShell) command(text string) *exec.Cmd {
	ctx, cancel := context.WithTimeout(s.t.Context(), longest)
	s.t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, "bash", "-ec", s.assignments+"exec "+text)
	cmd.WaitDelay = time.Second
	if strings.ContainsAny(text, "|&;<>$=") || strings.HasPrefix(text, "source") {
		cmd.Args[2] = s.assignments + "set -o pipefail; " + text
	}
	cmd.Dir = s.tree
	cmd.Env = append(os.Environ(), "XDG_RUNTIME_DIR="+s.state, "HOME="+s.state,
		"PATH="+filepath.Join(s.tree, "bin")+":"+os.Getenv("PATH"),
		"GOPATH="+goEnv(s.t, "GOPATH"), "GOCACHE="+goEnv(s.t, "GOCACHE"))
	return cmd
}

func goEnv(t *testing.T, name string) string {
	t.Helper()
	out, err := exec.Command("go", "env", name).Output()
	require.NoError(t, err)
	return strings.TrimSpace(string(out))
}

var assignment = regexp.MustCompile(`^[A-Za-z0-9_]+=\S+$`)

func (s *pageShell) run(c documentCommand) {
	s.t.Helper()
	if assignment.MatchString(c.text) {
		s.assignments += c.text + "; "
		return
	}
	if !endless.MatchString(c.text) {
		s.runToEnd(c)
		return
	}
	cmd := s.command(c.text)
	require.NoError(s.t, cmd.Start(), "%v", c)
	s.running = append(s.running, cmd)
	if words := strings.Fields(c.text); slices.Contains(words, "recvfile") {
		// The next command sends a file to this one.
		require.Eventually(s.t, func() bool {
			out, err := s.command("bin/node ctl " + words[2] + " sockets -l").Output()
			return err == nil && bytes.Contains(out, []byte(words[5]))
		}, 20*time.Second, 50*time.Millisecond, "%v", c)
	}
}

// runToEnd runs a command and compares its output with the page's. The nodes need a moment to reach
// the state that a page shows, so runToEnd repeats a command that changes nothing until it shows
// that state.
func (s *pageShell) runToEnd(c documentCommand) {
	s.t.Helper()
	fails := len(c.shown) > 0 && strings.HasPrefix(c.shown[len(c.shown)-1], "ping: ")
	deadline := time.Now().Add(time.Minute)
	for {
		out, err := s.command(c.text).CombinedOutput()
		missing := firstMissing(c.shown, string(out))
		if missing != "" && query.MatchString(c.text) && time.Now().Before(deadline) {
			continue
		}
		assert.Equal(s.t, fails, err != nil, "%v\n%v\n%.2000s", c, err, out)
		assert.Empty(s.t, missing, "%v\nprints no such line here:\n%.4000s", c, out)
		return
	}
}

// query matches commands that change nothing.
var query = regexp.MustCompile(`^bin/node ctl \S+ (routes|sockets|traceroute|window)( |$)`)

// firstMissing returns the first of the shown lines that the output lacks or has in another order.
// "…" in a shown line stands for any text, and the number of spaces does not matter. The output may
// have more lines.
func firstMissing(shown []string, output string) string {
	lines := strings.Split(output, "\n")
	for i, line := range lines {
		lines[i] = strings.Join(strings.Fields(line), " ")
	}
	for _, want := range shown {
		parts := strings.Split(want, "…")
		for i, part := range parts {
			parts[i] = regexp.QuoteMeta(strings.Join(strings.Fields(part), " "))
		}
		line := regexp.MustCompile("^" + strings.Join(parts, ".*") + "$")
		i := slices.IndexFunc(lines, line.MatchString)
		if i < 0 {
			return want
		}
		lines = lines[i+1:]
	}
	return ""
}

// end ends the running commands and the page's networks.
func (s *pageShell) end() {
	for _, cmd := range s.running {
		_ = cmd.Process.Signal(syscall.SIGINT) // the command may have exited
		_ = cmd.Wait()
	}
	networks, _ := filepath.Glob(filepath.Join(s.state, "tidepool", "*"))
	for _, n := range networks {
		_ = s.command("bin/node net down " + filepath.Base(n)).Run()
	}
	_ = os.RemoveAll(s.state)
}
