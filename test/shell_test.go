package e2e_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// result is the result of running a program.
type result struct {
	out, err string
	code     int
}

// node runs the program and waits for it.
func node(t *testing.T, stdin string, args ...string) result {
	t.Helper()
	cmd := Command(args...)
	var out, errs bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(stdin), &out, &errs
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil {
		require.ErrorAs(t, err, &exit)
	}
	assert.NotContains(t, errs.String(), "goroutine ", "a crash")
	return result{out.String(), errs.String(), cmd.ProcessState.ExitCode()}
}

// A script on standard input prints the three tables of the course's nodes, and the formats that
// users of iproute2 expect.
func TestThreeTables(t *testing.T) {
	t.Parallel()
	net := CopyNetwork(t, "nets", "a-b-c")
	r := node(t, "li\nlr\nls\n", "run", net.File("B"))
	assert.Zero(t, r.code)
	assert.Empty(t, r.err)
	heads := regexp.MustCompile(`(?m)^(Name +Addr/Prefix +State|`+
		`T       Prefix   Next hop   Cost|SID +LAddr +LPort +RAddr +RPort +Status) *$`).
		FindAllString(normal(r.out), -1)
	assert.Len(t, heads, 3, "%s", r.out)
	assert.Regexp(t, `(?m)^ *if0 +10\.0\.0\.2/24 +up *$`, r.out)
	assert.Regexp(t, `(?m)^L +10\.0\.0\.0/24 +LOCAL:if0 +0$`, r.out)
	assert.Regexp(t, `(?m)^L +10\.1\.0\.0/24 +LOCAL:if1 +0$`, r.out)

	r = node(t, "interfaces\nroutes\nsockets\n", "run", net.File("B"))
	assert.Zero(t, r.code)
	assert.Empty(t, r.err)
	assert.Regexp(t, `(?m)^if0 +UP +10\.0\.0\.2/24 +<UP,LOWER_UP> +mtu 1400 +rx `, r.out)
	assert.Contains(t, r.out, "10.0.0.0/24 dev if0 proto kernel scope link src 10.0.0.2\n")
	assert.Regexp(t, `(?m)^State +Recv-Q +Send-Q +Local Address:Port +Peer Address:Port +Process$`,
		r.out)
}

// normal replaces the header of the route table by that of the course, which has narrower columns.
func normal(text string) string {
	return regexp.MustCompile(`(?m)^T +Prefix +Next hop +Cost`).
		ReplaceAllString(text, "T       Prefix   Next hop   Cost")
}

// A script stops at its first error and reports the file and line.
func TestFailingScript(t *testing.T) {
	t.Parallel()
	net := CopyNetwork(t, "nets", "a-b")
	net.Append("A", fastRetries)
	file, dir := net.File("A"), t.TempDir()
	script := filepath.Join(dir, "script.txt")
	write := func(name, text string) {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644))
	}

	t.Log("# a command that does not exist")
	write("script.txt", "# a comment\n\nsockets\nsokcets\nrouets\n")
	r := node(t, "", "run", "--script", script, file)
	assert.NotZero(t, r.code)
	assert.Contains(t, r.err, script+":4: ")
	assert.Contains(t, r.err, `"sokcets"`)
	assert.Contains(t, r.err, "sockets", "the similar command")
	assert.NotContains(t, r.err, "rouets")

	t.Log("# a command used wrongly shows how it is used")
	write("script.txt", "connect 10.0.0.2\n")
	r = node(t, "", "run", "--script", script, file)
	assert.Equal(t, 2, r.code)
	assert.Contains(t, r.err, script+":1: ")
	assert.Contains(t, r.err, "usage: connect ADDR PORT")

	t.Log("# a command on standard input that fails")
	r = node(t, "sockets\nclose 5\nsockets\n", "run", file)
	assert.Equal(t, 1, r.code)
	assert.Regexp(t, `(?m)^[^ ]*:2: .*no such socket`, r.err)
	assert.Equal(t, 1, strings.Count(r.out, "Local Address"), "nothing after the error")

	t.Log("# an error in a sourced file names that file")
	write("inner.txt", "sockets\n\nclose 7\n")
	write("script.txt", "source "+filepath.Join(dir, "inner.txt")+"\n")
	r = node(t, "", "run", "--script", script, file)
	assert.Equal(t, 1, r.code)
	assert.Contains(t, r.err, filepath.Join(dir, "inner.txt")+":3: ")

	t.Log("# a file that sources itself is an error")
	write("script.txt", "source "+script+"\n")
	r = node(t, "", "run", "--script", script, file)
	assert.NotZero(t, r.code)

	t.Log("# a transfer that fails in the background fails the script")
	// The ping gives the connection time to begin, even on a busy machine.
	r = node(t, "sendfile "+script+" 10.0.0.2 80\nping -c 3 -i 0.5 10.0.0.1\nsockets\n", "run", file)
	assert.Equal(t, 1, r.code)
	assert.Contains(t, r.err, "timed out")
	assert.Contains(t, r.out, "SYN-SENT")

	t.Log("# missing files")
	r = node(t, "", "run", "--script", filepath.Join(dir, "missing"), file)
	assert.NotZero(t, r.code)
	assert.Contains(t, r.err, "missing")
	r = node(t, "", "run", filepath.Join(dir, "missing.lnx"))
	assert.NotZero(t, r.code)
	assert.Contains(t, r.err, "missing.lnx")
}

// Invalid commands are rejected before they change anything. Each prints one error line and the
// usage.
func TestWrongLines(t *testing.T) {
	t.Parallel()
	a := CopyNetwork(t, "nets", "a-b").Start("A")
	for _, command := range []string{
		"xyzzy", "connect", "connect 10.0.0.2", "connect ten 80", "connect 10.0.0.2 0",
		"connect 10.0.0.2 65536", "connect 10.0.0.2 80 90", "connect ::1 80", "accept http", "accept -1",
		"s", "s 0", "s zero text", "s 99 text", "s 0 FILL xx 10", "recv 0", "recv 0 0", "recv 0 -5",
		"recv 0 10 maybe", "shutdown 0 sideways", "close", "close x", "close 12345678901234567890",
		"sendfile", "sendfile a b", "sendfile /etc/passwd 10.0.0.2 http", "recvfile onlyname",
		"lossyforward -1", "lossyforward 100.1", "lossyforward NaN", "lossyforward half", "lossy 1.01",
		"up", "down nothing", "ping", "ping nobody", "ping -c -1 10.0.0.2", "ping -s 99999 10.0.0.2",
		"traceroute -m 0 10.0.0.2", "send", "send 10.0.0.2", "verbose maybe", "window 3", "cc 0 reno",
		"set", "set tcp.options", "set tcp.options perhaps", "set no.such 1", "show no.such",
		"pcap", "pcap begin", "pcap stop", "source", "source /no/such/file", "sleep long", "sleep -1",
		"interfaces -x", "routes extra", "cancel 9", `close "0`, "help xyzzy", "shutdown 0",
	} {
		answer, complaints := a.Do("%s", command)
		assert.Empty(t, answer, command)
		assert.Len(t, complaints, 1, command)
	}
	assert.Empty(t, a.Sockets())
	t.Log("# the node has not changed")
	a.MustDo("interfaces")
}

// The names that a command had in every generation of the course are aliases.
func TestAliases(t *testing.T) {
	t.Parallel()
	a := CopyNetwork(t, "nets", "a-b").Start("A")
	for name, alias := range map[string]string{
		"help": "h", "help a": "help accept",
	} {
		full := a.MustDo("%s", name)
		assert.Equal(t, full, a.MustDo("%s", alias), name)
		assert.NotEmpty(t, full, name)
	}
	a.MustDo("a 9000")
	a.MustDo("cl 0")
	a.MustDo("# a comment")
	a.MustDo("   ")
	a.Command("q")
	assert.Zero(t, a.Exit(Soon))
}
