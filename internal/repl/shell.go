// Package repl is the node's shell: it reads lines, converts them to requests of package control,
// and prints the answers. It knows the command names of both generations and nothing of the
// protocols.
//
// A line passes ReadLine (reader.go) or a script (script.go), Execute, split (words.go), a new
// command tree (tree.go), a file of commands (cmd_*.go) with an env (env.go), control.Ask,
// answer.go and screen.go. A Cobra tree keeps the flag values of its last run, so every line gets a
// new one, which costs less than a tenth of a millisecond.
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

// ErrInterrupted is the error of a command that Ctrl-C stopped.
var ErrInterrupted = errors.New("interrupted")

// quitting is the error that ends a session normally.
type quitting struct {
	last error // a script's last error, which was printed
}

func (*quitting) Error() string { return "quit" }

// told marks an error that was already printed.
type told struct{ error }

func (t *told) Unwrap() error { return t.error }

// Config configures a shell.
type Config struct {
	Operator control.Operator
	Out      io.Writer // answers and received data
	Err      io.Writer // everything else
	// KeepGoing makes a script continue after an error.
	KeepGoing bool
	// JSON prints answers and events as JSON, one document in a line, unless a command has another
	// flag.
	JSON bool
	// Color allows color.
	Color bool
	// Plain draws lines with ASCII characters.
	Plain bool
	// Width returns the present width of Err if it is a terminal that can show a progress bar. Nil
	// or zero: it cannot.
	Width func() int
	// Height returns the present height of Out if it is a terminal that can be repainted. Nil or
	// zero: it cannot.
	Height func() int
	// Keyboard is the terminal for commands that read keys; nil: none.
	Keyboard *os.File
	// Named replaces the program's name in help texts by the one that was used; nil: node.
	Named func(text string) string
	// Endless is called when a command starts that prints until Ctrl-C. It should end when Out has
	// no reader. Nil: ignored.
	Endless func()
}

// Shell is one session with a node. Several may use one Operator.
type Shell struct {
	env *env

	mu       sync.Mutex
	stop     context.CancelCauseFunc // of the running command; nil: none
	editor   LineReader              // nil: a script
	asking   bool                    // the editor shows the prompt
	early    bool                    // Ctrl-C came between the prompt and its command
	jobs     []*job                  // background transfers in the order of their start
	leaving  bool                    // quit was typed once while transfers run
	watching bool                    // events are shown
	alone    bool                    // the session is one command
	depth    int                     // nesting of sourced files
}

// New opens a session. It asks the node only for its name and the syntax of its file.
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

// Suspend restores the terminal if a command uses the whole screen or keys, calls stop, and then
// continues. It is for Ctrl-Z while a command runs.
func (s *Shell) Suspend(stop func()) { s.env.screen.suspend(func() { s.env.keys.aside(stop) }) }

// negatives ends the flags before an argument that is a negative number, so that the command can
// report its error. It does not change a flag's value, or commands that take words as typed.
func negatives(root *cobra.Command, args []string) []string {
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

// Execute runs one line and returns its error without printing it. Comments and blank lines do
// nothing. A panic in a command becomes an error: the node and its other sessions continue.
func (s *Shell) Execute(ctx context.Context, line string) error {
	asJSON := s.env.cfg.JSON || AsksJSON([]string{line})
	return s.execute(ctx, asJSON, func(root *cobra.Command) ([]string, error) {
		return arguments(root, line)
	})
}

// execute runs one command on a new tree. asJSON is the output format for words without a command.
func (s *Shell) execute(
	ctx context.Context, asJSON bool, words func(*cobra.Command) ([]string, error),
) (err error) {
	var c *cobra.Command // nil: not found
	defer func() {
		if undocumented(ctx, err) {
			unread := c == nil || errors.Is(err, control.ErrUsage) // the flags may be unparsed
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
	root.SetArgs(negatives(root, args))
	c, err = root.ExecuteContextC(ctx)
	return err
}

// run is Execute for a line of a session: Interrupt stops it.
func (s *Shell) run(ctx context.Context, line string) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	s.mu.Lock()
	outer := s.stop // of the line that sources this one
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

// interruption is an ErrInterrupted with the command's progress.
type interruption struct{ error }

func (i *interruption) Unwrap() []error { return []error{ErrInterrupted, i.error} }

// Interrupt stops the running command, like Ctrl-C. Signal handlers and remote sessions call it.
func (s *Shell) Interrupt() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stop != nil {
		s.stop(ErrInterrupted)
	} else {
		s.early = !s.asking
	}
}

// ExitCode returns the exit status for an error: 0 no error, 1 failed, 2 wrong usage or a ping that
// could not start, 130 Ctrl-C.
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
