package netctl

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/tidepool-net/tidepool/internal/diagnostic"
)

// HalfwayError is the error of an Apply that failed after a node had already stopped or reloaded
// its file. The network is neither in its old nor in its new state.
type HalfwayError struct {
	cause error
	state string
}

// Error returns the cause, the state of the network, and how to continue.
func (e *HalfwayError) Error() string { return e.cause.Error() + "\n" + e.state }
func (e *HalfwayError) Unwrap() error { return e.cause }

// halfway describes the state of a network, and how to complete the plan.
func (n *Network) halfway(ctx context.Context, next manifest, p Plan) string {
	var up, down []string
	for _, m := range next.Nodes {
		if life, _ := n.process(m.Name).life(ctx); life == Up {
			up = append(up, m.Name)
		} else {
			down = append(down, m.Name)
		}
	}
	list := func(names []string) string {
		if len(names) == 0 {
			return "none"
		}
		return strings.Join(names, " ")
	}
	return fmt.Sprintf("network %s is only partly changed: running the new files: %s; "+
		"not running: %s\n"+
		"fix the error above; `%s` then continues", p.Name, list(up), list(down),
		n.ApplyCommand())
}

// ApplyCommand returns the command that applies the network's files.
func (n *Network) ApplyCommand() string {
	name := filepath.Base(n.Source())
	for _, ext := range []string{".lnx", ".net"} {
		name = strings.TrimSuffix(name, ext)
	}
	text := "node net apply " + diagnostic.ShellWord(n.Source())
	if name != n.Name() {
		text += " --name " + n.Name()
	}
	return text
}
