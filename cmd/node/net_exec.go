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
		Short: "run one shell command at a node, or at each node of a network",
		Long: "Run one shell command at a node, or at each node of a network in turn. Each\n" +
			"node's name is printed above its answer. With --json, each answer is a line\n" +
			"{\"node\": \"A\", \"answer\": ...}, and a failure is {\"error\": ...,\n" +
			"\"status\": ...}. --json and --state may come before NODE or after COMMAND.\n" +
			"`node ctl` prints the answer alone. The exit status comes from the last node\n" +
			"that failed. Wrong usage stops the command at the first node.",
		Example: "  node net exec A routes\n" +
			"  node net exec ring interfaces -s\n" +
			"  node net exec ring routes --json",
		Args: usageArgs(cobra.MinimumNArgs(2)),
		RunE: func(c *cobra.Command, args []string) error {
			words, err := trailing(c, args[1:])
			if err != nil {
				return misuse(c, err)
			}
			s, err := o.open()
			if err != nil {
				return err
			}
			o.json = o.json || repl.AsksJSON(words)
			r := remote{netOptions: *o}
			found, err := s.Find(args[0])
			if err == nil || errors.Is(err, netctl.ErrAmbiguous) {
				return r.at(c, args[0], found.Node, words)
			}
			n, none := s.Network(networkName(args))
			if errors.Is(none, netctl.ErrNoNetwork) {
				return fmt.Errorf("%s: %w; %w", args[0], netctl.ErrNoNetwork, err)
			}
			if none != nil {
				return netError(none)
			}
			return r.each(c, n, words)
		},
		ValidArgsFunction: o.completeTargets,
	}
	c.Flags().SetInterspersed(false)
	c.Flags().BoolVar(&o.json, "json", false,
		"print a line of JSON for each answer: {\"node\": ..., \"answer\": ...}")
	return c
}

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

// at runs one command at one node, and adds the node's name to JSON output.
func (r *remote) at(c *cobra.Command, ref, name string, words []string) error {
	if !r.json {
		return r.one(c, ref, words)
	}
	out := c.OutOrStdout()
	defer c.SetOut(out)
	lines := &lineWriter{tell: func(line []byte) error { return tellNamed(out, name, line) }}
	c.SetOut(lines)
	return errors.Join(r.one(c, ref, words), lines.end())
}

// lineWriter is an io.Writer that passes on whole lines without their line ends.
type lineWriter struct {
	tell func(line []byte) error
	part []byte // an incomplete line
}

func (w *lineWriter) Write(p []byte) (int, error) {
	w.part = append(w.part, p...)
	for {
		line, rest, whole := bytes.Cut(w.part, []byte("\n"))
		if !whole {
			return len(p), nil
		}
		w.part = bytes.Clone(rest)
		if err := w.tell(line); err != nil {
			return 0, err
		}
	}
}

// end passes on an incomplete last line.
func (w *lineWriter) end() error {
	if len(w.part) == 0 {
		return nil
	}
	return w.tell(w.part)
}

// namedLine is a line of output with the name of the node that printed it.
type namedLine struct {
	Node   string          `json:"node"`
	Answer json.RawMessage `json:"answer,omitempty"`
	Text   string          `json:"text,omitempty"` // a line that is not JSON
}

// tellNamed prints a line of JSON with the node's name added.
func tellNamed(out io.Writer, node string, line []byte) error {
	if len(bytes.TrimSpace(line)) == 0 {
		return nil
	}
	l := namedLine{Node: node, Answer: line}
	if !json.Valid(line) {
		l.Answer, l.Text = nil, string(line)
	}
	return json.NewEncoder(out).Encode(l)
}

// each runs one command at every node of a network, until wrong usage or a signal stops it, and
// returns the last error.
func (r *remote) each(c *cobra.Command, n *netctl.Network, words []string) error {
	var last error
	for i, m := range n.Members() {
		if !r.json {
			above := strings.Repeat("\n", min(i, 1))
			_, err := fmt.Fprintf(c.OutOrStdout(), "%s%s:\n", above, m.Name)
			if err != nil {
				return err
			}
		}
		err := r.atNamed(c, n.Name()+"/"+m.Name, m.Name, words)
		if code := repl.ExitCode(err); code == 2 || code == 130 {
			return err
		}
		if _, by := errors.AsType[signalError](err); by {
			return err
		}
		if text := explain(c, err); text != "" {
			_, _ = fmt.Fprint(c.ErrOrStderr(), text)
			err = printedError{err}
		}
		if err != nil {
			last = err
		}
	}
	return last
}

// atNamed is like at, but prefixes errors with the node's name.
func (r *remote) atNamed(c *cobra.Command, ref, name string, words []string) error {
	talk := c.ErrOrStderr()
	defer c.SetErr(talk)
	lines := &lineWriter{tell: func(line []byte) error {
		_, err := fmt.Fprintf(talk, "%s: %s\n", name, line)
		return err
	}}
	c.SetErr(lines)
	return errors.Join(r.at(c, ref, name, words), lines.end())
}
