// Package repl is the node's shell. It reads lines, converts them to requests of package control,
// and prints the answers. It knows the command names of both generations of the course, but nothing
// about the protocols.
//
// A line passes through these steps: ReadLine (reader.go) or a script (script.go), Execute, split
// (words.go), a new command tree (tree.go), the command's file (cmd_*.go) with an env (env.go),
// control.Ask, answer.go and screen.go. A Cobra tree keeps the flag values of its last run, so
// every line gets a new tree. Building one takes less than a tenth of a millisecond.
package repl

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"github.com/tidepool-net/tidepool/internal/control"
)

// ErrInterrupted is the error of a command that the user stopped with Ctrl-C.
var ErrInterrupted = errors.New("interrupted")

// quitError is the error that ends a session normally.
type quitError struct {
	last error // the last error of a script, already printed
}

func (*quitError) Error() string { return "quit" }

// printedError marks an error that was already printed.
type printedError struct{ error }

func (t *printedError) Unwrap() error { return t.error }

// Config configures a shell.
type Config struct {
	Operator control.Operator
	Out      io.Writer // output for answers and received data
	Err      io.Writer // output for everything else
	// KeepGoing makes a script continue after an error.
	KeepGoing bool
	// JSON makes the shell print answers and events as JSON, one document per line, unless a
	// command's own flag says otherwise.
	JSON bool
	// Color allows colored output.
	Color bool
	// Plain makes the shell draw lines with ASCII characters.
	Plain bool
	// Width returns the current width of Err if Err is a terminal that can show a progress bar.
	// Otherwise it returns zero, or is nil.
	Width func() int
	// Height returns the current height of Out if Out is a terminal that can be repainted.
	// Otherwise it returns zero, or is nil.
	Height func() int
	// Keyboard is the terminal for commands that read keys. It may be nil.
	Keyboard *os.File
	// Named replaces the name node in help texts by the name that the user typed; nil: node.
	Named func(text string) string
	// Endless is called at the start of a command that prints until Ctrl-C. Endless should end the
	// command when Out has no reader. It may be nil.
	Endless func()
}

// Shell is one session with a node. Several sessions may use one Operator.
type Shell struct {
	env *env

	mu       sync.Mutex
	stop     context.CancelCauseFunc // stops the running command; nil: no command
	editor   LineReader              // reader of lines; nil for a script
	asking   bool                    // the editor shows the prompt
	early    bool                    // Ctrl-C was pressed between the prompt and its command
	jobs     []*job                  // background transfers in the order of their start
	leaving  bool                    // the user typed quit while transfers run
	watching bool                    // the session prints events
	alone    bool                    // the session runs a single command
	depth    int                     // depth of nested `source` commands
}

// New opens a session. It queries only the node's name and the syntax of its file.
func New(ctx context.Context, cfg Config) (*Shell, error) {
	node, err := control.Ask(ctx, cfg.Operator, control.About{})
	if err != nil {
		return nil, fmt.Errorf("asking the node for its name: %w", err)
	}
	return newShell(cfg, node, &screen{out: cfg.Out, err: cfg.Err}), nil
}

func newShell(cfg Config, node control.Node, out *screen) *Shell {
	s := &Shell{}
	s.env = &env{
		cfg: cfg, op: cfg.Operator, node: node, screen: out, keys: keys{tty: cfg.Keyboard},
		interactive: s.interactive, single: s.single, background: s.background, track: s.track,
	}
	return s
}

// Say prints a message, folded to the terminal's width.
func (s *Shell) Say(text string) { s.env.screen.talk(fold(s.env.width(), text)) }

// Suspend restores the terminal if a command uses the whole screen or reads keys, calls stop, and
// then continues the command. It handles Ctrl-Z while a command runs.
func (s *Shell) Suspend(stop func()) { s.env.screen.suspend(func() { s.env.keys.aside(stop) }) }

// escapeNegatives inserts -- before an argument that is a negative number, so that the command can
// report the error. It does not change the value of a flag, or commands that take words as typed.
func escapeNegatives(root *cobra.Command, args []string) []string {
	c := lookup(root, args[0])
	if c == nil || c.DisableFlagParsing {
		return args
	}
	for i, word := range args[1:] {
		if len(word) > 1 && word[0] == '-' && strings.Contains("0123456789.", word[1:2]) &&
			!strings.HasPrefix(args[i], "-") && c.Flags().ShorthandLookup(word[1:2]) == nil {
			return slices.Insert(args, i+1, "--")
		}
	}
	return args
}

// Execute runs one line and returns its error without printing it. Blank lines and comments do
// nothing. A panic in a command becomes an error, so the node and its other sessions continue.
func (s *Shell) Execute(ctx context.Context, line string) error {
	asJSON := s.env.cfg.JSON || AsksJSON([]string{line})
	return s.execute(ctx, asJSON, func(root *cobra.Command) ([]string, error) {
		return arguments(root, line)
	})
}

// execute runs one command on a new tree. asJSON is the format of errors before flags are parsed.
func (s *Shell) execute(
	ctx context.Context, asJSON bool, words func(*cobra.Command) ([]string, error),
) (err error) {
	var c *cobra.Command // command of the line; nil if it was not found
	defer func() {
		if needsJSON(ctx, err) {
			unread := c == nil || errors.Is(err, control.ErrUsage) // flags may not have been parsed
			err = s.env.documentFailure(c, asJSON && unread, err)
		}
	}()
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("BUG: this command panicked (the node continues): %v", p)
		}
	}()
	root := s.tree()
	args, err := words(root)
	if err != nil || len(args) == 0 {
		return err
	}
	root.SetArgs(escapeNegatives(root, args))
	c, err = root.ExecuteContextC(ctx)
	return err
}

// run is like Execute, for a line of a session. Interrupt stops it.
func (s *Shell) run(ctx context.Context, line string) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	s.mu.Lock()
	outer := s.stop // stops the line that sources this one
	s.stop = stop
	if s.early {
		s.early = false
		stop(ErrInterrupted)
	}
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		s.stop = outer
		s.mu.Unlock()
	}()
	err := s.Execute(ctx, line)
	if err == nil || !errors.Is(context.Cause(ctx), ErrInterrupted) {
		return err
	}
	if errors.Is(err, control.ErrStopped) {
		return &interruption{err}
	}
	return ErrInterrupted
}

// interruption is an ErrInterrupted that contains the command's progress.
type interruption struct{ error }

func (i *interruption) Unwrap() []error { return []error{ErrInterrupted, i.error} }

// Interrupt stops the running command, as Ctrl-C does. Signal handlers and remote sessions call it.
func (s *Shell) Interrupt() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stop != nil {
		s.stop(ErrInterrupted)
	} else {
		s.early = !s.asking
	}
}

// ExitCode returns the exit status for an error: 0 for no error, 1 for a failure, 2 for wrong usage
// or a ping that could not start, and 130 for Ctrl-C.
func ExitCode(err error) int {
	var own *statusError
	switch {
	case err == nil:
		return 0
	case errors.Is(err, ErrInterrupted):
		return 130
	case errors.Is(err, control.ErrUsage):
		return 2
	case errors.As(err, &own):
		return own.status
	default:
		return 1
	}
}
