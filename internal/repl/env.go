package repl

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/tidepool-net/tidepool/internal/control"
)

// env is what a command works with: the node, the place for its answer, and what the session tells
// it and does for it.
type env struct {
	cfg    Config
	op     control.Operator
	node   control.Node
	screen *screen
	keys   keys

	interactive func() bool // somebody types the lines
	single      func() bool // the session is one command
	// background runs a transfer beside the session: about is what it moves, doing what it does
	// now.
	background func(c *cobra.Command, about, doing string, run transfer) error
	// track shows the progress of a command until end is called.
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
