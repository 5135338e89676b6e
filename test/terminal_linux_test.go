package e2e_test

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/creack/pty"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A program inside a network gets Ctrl-C and Ctrl-\ from the terminal exactly once. Ctrl-Z stops
// the program and its command, and the shell's fg continues both.
func TestTerminalOfPrograms(t *testing.T) {
	t.Parallel()
	h := runHosts(t, "nets", "a-b")
	assert.Equal(t, "B\n", h.output("B", "echo", "B")) // the next program joins these namespaces
	for name, command := range map[string]*exec.Cmd{
		"link": Command("link", "delay", "1ms", "--"), "in": h.in("A"), "in, the second": h.in("B"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			shell := exec.Command("sh", "-i")
			shell.Env = append(Command().Env, "PS1=prompt: ", "PATH="+os.Getenv("PATH"))
			terminal, err := pty.StartWithSize(shell, &pty.Winsize{Rows: 24, Cols: 200})
			require.NoError(t, err)
			t.Cleanup(func() {
				_ = shell.Process.Kill() // the terminal hangs up the program
				_ = shell.Wait()
				_ = terminal.Close()
			})
			shown := &screen{fresh: make(chan struct{}, 1)}
			go shown.read(terminal)
			enter := func(keys string) {
				_, err := terminal.WriteString(keys)
				require.NoError(t, err)
			}
			shown.await(t, "prompt: ")
			const program = `sh -c 'n=0; trap "n=\$((n+1)); echo caught=\$n" INT; ` +
				`trap "echo resu\"\"med" CONT; echo rea''dy; while :; do sleep 0.02; done'`
			enter(command.Path + " " + strings.Join(command.Args[1:], " ") + " " + program + "\r")
			shown.await(t, "ready")
			enter("\x03")
			shown.await(t, "caught=1")
			enter("\x1a")
			shown.await(t, "Stopped")
			shown.await(t, "prompt: ")
			enter("fg; echo status=$?\r")
			shown.await(t, "resumed") // before, the terminal is still the shell's
			enter("\x03")
			shown.await(t, "caught=2")
			enter("\x1c")
			shown.await(t, "status=131")
		})
	}
}
