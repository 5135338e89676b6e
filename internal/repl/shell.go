// Package repl is the node's shell: it reads lines, turns each into requests of package control and
// renders the answers. It knows both generations' command names and nothing of the protocols.
//
// A line's way: ReadLine (reader.go) or a script (script.go) -> Execute -> split (words.go) ->
// a fresh command tree (tree.go) -> one file of commands (cmd_*.go), which get an env (env.go) ->
// control.Ask -> answer.go -> screen.go. A cobra tree keeps the flag values of its last run, which
// is why every line gets a new one; that costs less than a tenth of a millisecond.
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

// ErrInterrupted is the error of a command that Ctrl-C ended.
var ErrInterrupted = errors.New("interrupted")

// quitting is the error that ends a session in order.
type quitting struct {
	last error // of a script: what went wrong before, and was told
}

func (*quitting) Error() string { return "quit" }

// told marks an error that was printed already.
type told struct{ error }

func (t *told) Unwrap() error { return t.error }

// Config is what a shell works with.
type Config struct {
	Operator control.Operator
	Out      io.Writer // answers and received data
	Err      io.Writer // everything else
	// KeepGoing has a script go on behind a line that failed.
	KeepGoing bool
	// JSON has answers and events printed as JSON, one document a line, unless a command says
	// otherwise.
	JSON bool
	// Color allows colour; zero: none.
	Color bool
	// Plain has lines drawn with the letters of ASCII.
	Plain bool
	// Width is the terminal's width now, if Err is one on which a progress bar may be drawn.
	// Nil or zero: it is not.
	Width func() int
	// Height is the height now of the terminal that Out is, if it may be painted. Nil or zero: it
	// may not.
	Height func() int
	// Keyboard is the terminal at which somebody types, for commands that take keys; nil: none.
	Keyboard *os.File
	// Named puts the name of the program, as it was called, into help; nil: node.
	Named func(text string) string
	// Endless is told when a command begins that only shows what happens, until Ctrl-C: when nobody
	// reads Out any more, it may as well end. Nil: it does not matter.
	Endless func()
}

// Shell is one session with a node. Several may run beside each other on one Operator.
type Shell struct {
	env *env

	mu       sync.Mutex
	stop     context.CancelCauseFunc // of the command that runs; nil: none
	editor   LineReader              // nil: a script
	asking   bool                    // the editor shows the prompt
	early    bool                    // Ctrl-C came between the prompt and its command
	jobs     []*job                  // transfers in the background, in the order of their start
	leaving  bool                    // quit was asked for while transfers run
	watching bool                    // events are shown as they come
	alone    bool                    // the session is one command
	depth    int                     // how many files are being sourced
}

// New opens a session. It asks the node for its name and grammar, nothing more.
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

// Say prints what is not an answer, in lines that fit.
func (s *Shell) Say(text string) { s.env.screen.talk(fold(s.env.width(), text)) }

// Suspend gives the terminal back if a command has taken the whole of it, calls stop, and takes it
// again. It is for whoever sees Ctrl-Z while a command runs.
func (s *Shell) Suspend(stop func()) { s.env.screen.suspend(func() { s.env.keys.aside(stop) }) }

// negatives ends the flags before an argument that is a negative number, so that
// the command can say what is wrong with it. A flag's value is left alone, and so
// is a command that takes its words as they are.
func negatives(root *cobra.Command, args []string) []string {
	if c := lookup(root, args[0]); c == nil || c.DisableFlagParsing {
		return args
	}
	for i, word := range args[1:] {
		if len(word) > 1 && word[0] == '-' && strings.Contains("0123456789.", word[1:2]) &&
			!strings.HasPrefix(args[i], "-") {
			return slices.Insert(args, i+1, "--")
		}
	}
	return args
}

// Execute runs one line and returns its error without printing it. Comments and blank lines are
// nothing. A panic in a command becomes an error: the node and its other sessions go on.
func (s *Shell) Execute(ctx context.Context, line string) error {
	asJSON := s.env.cfg.JSON || AsksJSON([]string{line})
	return s.execute(ctx, asJSON, func(root *cobra.Command) ([]string, error) {
		return arguments(root, line)
	})
}

// execute runs one command on a tree of its own. asJSON says what it was to answer with, of words
// that no command could be found for.
func (s *Shell) execute(
	ctx context.Context, asJSON bool, words func(*cobra.Command) ([]string, error),
) (err error) {
	var c *cobra.Command // nil: none was found
	defer func() {
		if undocumented(ctx, err) {
			unread := c == nil || errors.Is(err, control.ErrUsage) // then no flag may be known
			err = s.env.documentFailure(c, asJSON && unread, err)
		}
	}()
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("BUG: this command panicked; the node continues: %v", p)
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

// run is Execute for a line of a session: Interrupt ends it.
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

// interruption is an ErrInterrupted that says how far the command came.
type interruption struct{ error }

func (i *interruption) Unwrap() []error { return []error{ErrInterrupted, i.error} }

// Interrupt ends the command that runs, as Ctrl-C does; without one it does nothing. It is for
// whoever sees the key: a signal handler, or the far end of a socket.
func (s *Shell) Interrupt() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stop != nil {
		s.stop(ErrInterrupted)
	} else {
		s.early = !s.asking
	}
}

// ExitCode is the status with which a program ends after err: 0 none, 1 failed, 2 wrong usage or
// a ping that could not begin, 130 Ctrl-C.
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
