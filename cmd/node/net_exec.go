package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tidepool-net/tidepool/internal/netctl"
	"github.com/tidepool-net/tidepool/internal/repl"
)

func (o *netOptions) execCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "exec NODE|NETWORK COMMAND...",
		Short: "one command of the shell at a node, or at each of a network",
		Long: "Carry out one command of the shell at a node, or at each of a network in turn.\n" +
			"With --json before NODE or NETWORK what a node prints is a line of JSON each, with\n" +
			"the node's name beside it; behind COMMAND, --json is the command's own.",
		Example: "  node net exec A routes\n" +
			"  node net exec ring interfaces -s\n" +
			"  node net exec --json ring routes",
		Args: usageArgs(cobra.MinimumNArgs(2)),
		RunE: func(c *cobra.Command, args []string) error {
			s, err := o.open()
			if err != nil {
				return err
			}
			words := args[1:]
			if words[0] == "--" && len(words) > 1 { // as ctl has it
				words = words[1:]
			}
			r := remote{netOptions: *o}
			found, err := s.Find(args[0])
			if err == nil || errors.Is(err, netctl.ErrAmbiguous) {
				return r.at(c, args[0], found.Node, words)
			}
			n, none := s.Network(networkName(args))
			if errors.Is(none, netctl.ErrNoNetwork) {
				return fmt.Errorf("%w; and no network has that name", err)
			}
			if none != nil {
				return netError(none)
			}
			return r.each(c, n, words)
		},
		ValidArgsFunction: o.completeTargets,
	}
	c.Flags().SetInterspersed(false)
	c.Flags().BoolVar(&o.json, "json", false, "print lines of JSON: {\"node\", \"answer\"}")
	return c
}

// completeTargets are the nodes and networks that there are, and then the words of a command.
func (o *netOptions) completeTargets(
	c *cobra.Command, args []string, prefix string,
) ([]string, cobra.ShellCompDirective) {
	r := remote{netOptions: *o}
	if len(args) > 0 {
		return r.completeCommand(c, args, prefix)
	}
	list, what := r.complete(c, args, prefix)
	networks, _ := o.completeNetworks(c, args, prefix)
	return slices.Concat(list, networks), what
}

// at carries out one command at one node, whose name stands beside what it prints as JSON.
func (r *remote) at(c *cobra.Command, ref, name string, words []string) error {
	if !r.json {
		return r.one(c, ref, words)
	}
	out := c.OutOrStdout()
	defer c.SetOut(out)
	lines := &named{node: name, out: out}
	c.SetOut(lines)
	return errors.Join(r.one(c, ref, words), lines.end())
}

// named puts a node's name beside each line of JSON that is written to it.
type named struct {
	node string
	out  io.Writer
	line []byte // what has come of one
}

// namedLine is a line as it is then.
type namedLine struct {
	Node   string          `json:"node"`
	Answer json.RawMessage `json:"answer,omitempty"`
	Text   string          `json:"text,omitempty"` // what is no JSON
}

// Write implements io.Writer.
func (n *named) Write(p []byte) (int, error) {
	n.line = append(n.line, p...)
	for {
		line, rest, whole := bytes.Cut(n.line, []byte("\n"))
		if !whole {
			return len(p), nil
		}
		n.line = bytes.Clone(rest)
		if err := n.tell(line); err != nil {
			return 0, err
		}
	}
}

// end tells of a last line without an end.
func (n *named) end() error { return n.tell(n.line) }

func (n *named) tell(line []byte) error {
	if len(bytes.TrimSpace(line)) == 0 {
		return nil
	}
	l := namedLine{Node: n.node, Answer: line}
	if !json.Valid(line) {
		l.Answer, l.Text = nil, string(line)
	}
	return json.NewEncoder(n.out).Encode(l)
}

// each carries out one command at every node of a network, and returns the last error.
func (r *remote) each(c *cobra.Command, n *netctl.Network, words []string) error {
	var last error
	for i, m := range n.Members() {
		if !r.json {
			_, _ = fmt.Fprintf(c.ErrOrStderr(), "%s%s\n", strings.Repeat("\n", min(i, 1)), m.Name)
		}
		err := r.at(c, n.Name()+"/"+m.Name, m.Name, words)
		if code := repl.ExitCode(err); code == 2 || code == 130 {
			return err
		}
		if _, by := errors.AsType[signalError](err); by {
			return err
		}
		if text := explain(err); text != "" {
			_, _ = fmt.Fprint(c.ErrOrStderr(), text)
			err = told{err}
		}
		if err != nil {
			last = err
		}
	}
	return last
}
