package repl

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/tidepool-net/tidepool/internal/control"
)

// env is the environment of a command: the node, the output, and the session's functions.
type env struct {
	cfg    Config
	op     control.Operator
	node   control.Node
	screen *screen
	keys   keys

	interactive func() bool // reports whether the user types the lines
	single      func() bool // reports whether the session is one command
	// background runs a transfer of the file about in the background. doing follows the file's name
	// in messages, such as "waits for a connection on port 80".
	background func(c *cobra.Command, about, doing string, run transfer) error
	// track shows the progress of a command until the caller calls end.
	track func(name string, cancel context.CancelFunc) (advance progress, end func())
}

func (e *env) width() int { return now(e.cfg.Width) }

func (e *env) height() int { return now(e.cfg.Height) }

func now(size func() int) int {
	if size == nil {
		return 0
	}
	return size()
}

func (e *env) script() bool { return !e.interactive() }

func (e *env) endless() {
	if e.cfg.Endless != nil {
		e.cfg.Endless()
	}
}
