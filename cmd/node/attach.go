package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tidepool-net/tidepool/internal/api"
	"github.com/tidepool-net/tidepool/internal/repl"
)

// remote finds a running node.
type remote struct {
	netOptions
	token  string
	listed bool // the node was found by name, so `net status` lists it
}

func (r *remote) flags(c *cobra.Command) {
	r.stateFlag(c)
	c.Flags().StringVar(&r.token, "token", os.Getenv("TIDEPOOL_TOKEN"),
		"send `TOKEN` to a node at an http address; the default is $TIDEPOOL_TOKEN")
	c.Flags().Lookup("token").DefValue = "" // keeps the token out of the help
}

// answerTime limits the wait for a node's answer. A suspended node never answers.
const answerTime = 5 * time.Second

const nodeArg = "NODE is a node's name, NETWORK/NODE, the path of a socket or of a folder\n" +
	"with one socket, or http://127.0.0.1:PORT[/NODE]."

// client returns a client of a node and the node's name. It sends a request to the server, so that
// a node that does not answer is an error at once.
func (r *remote) client(ctx context.Context, ref string) (*api.Client, string, error) {
	e, node, err := r.endpoint(ctx, ref)
	if err != nil {
		return nil, "", err
	}
	ask, cancel := context.WithTimeoutCause(ctx, answerTime, fmt.Errorf(
		"%s: %w within %v", ref, api.ErrGone, answerTime))
	defer cancel()
	p, err := api.NewClient(e, node).Process(ask)
	if err != nil {
		if ask.Err() != nil {
			err = context.Cause(ask)
		}
		if p, ok := errors.AsType[*api.Problem](err); ok && p.Status == http.StatusUnauthorized {
			err = r.unknown(ref)
		}
		if r.listed && errors.Is(err, api.ErrGone) {
			err = fmt.Errorf("%w; `node net status` shows its state", err)
		}
		return nil, "", err
	}
	if node == "" {
		if len(p.Nodes) != 1 {
			return nil, "", &usageError{fmt.Errorf("%s: has several nodes; add /NODE, one of %s",
				ref, strings.Join(p.Nodes, ", "))}
		}
		node = p.Nodes[0]
	}
	return api.NewClient(e, node), node, nil
}

func (r *remote) unknown(ref string) error {
	what := "the server refused this token"
	if r.token == "" {
		what = "the server needs a token"
	}
	return fmt.Errorf("%s: %s: use --token TOKEN, or set TIDEPOOL_TOKEN, with the token that "+
		"the server printed when it started", ref, what)
}

// endpoint returns a node's address, and the node's name if the reference contains it.
func (r *remote) endpoint(
	ctx context.Context, ref string,
) (e api.Endpoint, node string, err error) {
	if strings.HasPrefix(ref, "http://") {
		u, err := url.Parse(ref)
		if err != nil {
			return e, "", &usageError{err}
		}
		return api.Endpoint{URL: "http://" + u.Host, Token: r.token}, strings.Trim(u.Path, "/"), nil
	}
	if path := socketAt(ref); path != "" {
		return api.Endpoint{Socket: path}, "", nil
	}
	s, err := r.open()
	if err != nil {
		return e, "", err
	}
	t, err := s.Find(ref)
	if err != nil {
		return e, "", netError(err)
	}
	r.listed = true
	if t.Host != "" {
		n, err := s.Network(t.Network)
		if err == nil {
			err = n.Reach(ctx, t.Node)
		}
		if err != nil {
			return e, "", err
		}
	}
	return api.Endpoint{Socket: t.Socket, Away: t.Host != ""}, t.Node, nil
}

// socketAt returns the path of a socket, or of the only socket in a folder. It returns "" if the
// path is neither. It looks into a folder only if the path contains a separator.
func socketAt(path string) string {
	if strings.ContainsRune(path, filepath.Separator) {
		if list, err := filepath.Glob(filepath.Join(path, "*.sock")); err == nil && len(list) == 1 {
			path = list[0]
		}
	}
	if info, err := os.Stat(path); err != nil || info.Mode()&fs.ModeSocket == 0 {
		return ""
	}
	return path
}

func (r *remote) complete(
	_ *cobra.Command, args []string, _ string,
) ([]string, cobra.ShellCompDirective) {
	s, err := r.open()
	if err != nil || len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	list, _ := s.Networks()
	var names []string
	for _, n := range list {
		for _, m := range n.Members() {
			names = append(names, m.Name)
			if len(list) > 1 {
				names = append(names, n.Name()+"/"+m.Name)
			}
		}
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

// completeCommand completes a shell command, as Tab does in the shell.
func (r *remote) completeCommand(
	c *cobra.Command, args []string, prefix string,
) ([]string, cobra.ShellCompDirective) {
	const only = cobra.ShellCompDirectiveNoFileComp
	client, _, err := r.client(c.Context(), args[0])
	if err != nil {
		return nil, only
	}
	defer client.Close()
	shell, err := repl.New(c.Context(), repl.Config{
		Operator: client, Out: io.Discard, Err: io.Discard,
	})
	if err != nil {
		return nil, only
	}
	words := shell.Complete(strings.Join(append(args[1:len(args):len(args)], prefix), " "))
	if slices.ContainsFunc(words, func(w string) bool { return strings.HasSuffix(w, "/") }) {
		return words, only | cobra.ShellCompDirectiveNoSpace
	}
	return words, only
}

// following returns a context that ends when the node stops. The function also closes the client.
func following(ctx context.Context, c *api.Client, node string) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	go func() {
		select {
		case <-c.Lost():
			cancel(fmt.Errorf("%w: %s stopped", api.ErrGone, node))
		case <-ctx.Done():
		}
	}()
	return ctx, func() { cancel(nil); c.Close() }
}

func attachCommand() *cobra.Command {
	var r remote
	var asJSON, keepGoing bool
	c := &cobra.Command{
		Use:   "attach NODE",
		Short: "open a shell at a running node",
		Long: "Open the shell of a running node, as `node run` does at a terminal. Several\n" +
			"shells may be open at the same time. Ctrl-C stops the running command. Ctrl-D\n" +
			"leaves the shell, and the node keeps running. If standard input is not a\n" +
			"terminal, the lines of standard input are run as a script.\n" +
			"\n" + nodeArg,
		Example:           "  node net up nets/ring && node attach A",
		Args:              usageArgs(cobra.ExactArgs(1)),
		ValidArgsFunction: r.complete,
		RunE: func(c *cobra.Command, args []string) error {
			client, name, err := r.client(c.Context(), args[0])
			if err != nil {
				return err
			}
			console := newConsole(c.InOrStdin(), c.OutOrStdout(), c.ErrOrStderr())
			o := runOptions{json: asJSON, keepGoing: keepGoing}
			ctx, stop := endBySignal(c.Context(), endSignals(console.typed)...)
			defer stop()
			ctx, leave := following(ctx, client, name)
			defer leave()
			if !console.typed {
				return r.ended(name, o.runScript(ctx, client, console, "stdin"))
			}
			hello := fmt.Sprintf("attached to node %s; Ctrl-D leaves, the node keeps running", name)
			return r.ended(name, o.runShell(ctx, client, console, hello))
		},
	}
	r.flags(c)
	c.Flags().BoolVar(&asJSON, "json", false, "print answers and events as JSON")
	c.Flags().BoolVar(&keepGoing, "keep-going", false, "continue after a line that fails")
	return c
}

// ended returns a session's error. It reports that the node stopped if that ended the session.
func (r *remote) ended(node string, err error) error {
	switch {
	case !errors.Is(err, api.ErrGone):
		return err
	case r.listed:
		return fmt.Errorf("%s stopped; `node net status` shows its state", node)
	default:
		return fmt.Errorf("%s stopped", node)
	}
}

func ctlCommand() *cobra.Command {
	var r remote
	c := &cobra.Command{
		Use:   "ctl NODE COMMAND...",
		Short: "run one shell command at a running node",
		Long: "Run one shell command at a running node. COMMAND is a command with its\n" +
			"arguments, or one quoted line. `node ctl NODE help` lists the commands. --state\n" +
			"and --token may come before NODE or after COMMAND.\n" +
			"\n" +
			"With --json the output is one JSON document; commands that keep printing, such\n" +
			"as `events`, print one document per line. A failure is\n" +
			"{\"error\": ..., \"status\": ...}. The exit status is 0, 1 if COMMAND failed, 2\n" +
			"for wrong usage, or 130 after Ctrl-C.\n" +
			"\n" + nodeArg,
		Example: "  node ctl A sockets --json\n" +
			"  node ctl A ping -c 3 10.5.0.2\n" +
			"  node ctl A events --json",
		Args: usageArgs(cobra.MinimumNArgs(2)),
		ValidArgsFunction: func(c *cobra.Command, args []string, prefix string) (
			[]string, cobra.ShellCompDirective,
		) {
			if len(args) > 0 {
				return r.completeCommand(c, args, prefix)
			}
			return r.complete(c, args, prefix)
		},
		RunE: func(c *cobra.Command, args []string) error {
			words, err := trailing(c, args[1:])
			if err != nil {
				return misuse(c, err)
			}
			return r.one(c, args[0], words)
		},
	}
	c.Flags().SetInterspersed(false) // flags after NODE belong to COMMAND
	r.flags(c)
	return c
}

// trailing parses the program's own options among the words after NODE and returns the other words.
// Options without a value stay, because shell commands also have --json and --help. Words after --
// belong to COMMAND.
func trailing(c *cobra.Command, words []string) (rest []string, err error) {
	for i := 0; i < len(words); i++ {
		word := words[i]
		if word == "--" && len(words) > i+1 {
			if len(rest) > 0 {
				return append(rest, words[i:]...), nil
			}
			return words[i+1:], nil // like the -- of POSIX utilities
		}
		name, value, given := strings.Cut(word, "=")
		f := c.Flags().Lookup(strings.TrimPrefix(name, "--"))
		if !strings.HasPrefix(name, "--") || f == nil || f.NoOptDefVal != "" {
			rest = append(rest, word)
			continue
		}
		if !given {
			if i++; i == len(words) {
				return nil, fmt.Errorf("flag needs an argument: %s", word)
			}
			value = words[i]
		}
		if err := c.Flags().Set(f.Name, value); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	if len(rest) == 0 {
		return nil, errors.New("COMMAND is missing")
	}
	return rest, nil
}

// one runs one command at one node. With --json, all errors are also printed as JSON.
func (r *remote) one(c *cobra.Command, ref string, words []string) error {
	err := r.oneOf(c, ref, words)
	if r.json || repl.AsksJSON(words) {
		return answerFailure(c, c.OutOrStdout(), err)
	}
	return err
}

func (r *remote) oneOf(c *cobra.Command, ref string, words []string) error {
	ctx, stop := endBySignal(c.Context())
	defer stop()
	client, name, err := r.client(ctx, ref)
	if err != nil {
		return err
	}
	ctx, leave := following(ctx, client, name)
	defer leave()
	console := newConsole(c.InOrStdin(), c.OutOrStdout(), c.ErrOrStderr())
	ctx, forget := console.untilReaderGone(ctx)
	defer forget()
	shell, err := (&runOptions{json: r.json}).shell(ctx, client, console)
	if err != nil {
		return err
	}
	defer suspending(shell)()
	return r.ended(name, markPrinted(shell.Command(ctx, words...)))
}

// keys makes Ctrl-C interrupt the shell's current command until stop is called.
func keys(shell *repl.Shell) (stop func()) {
	pressed := make(chan os.Signal, 1)
	signal.Notify(pressed, os.Interrupt)
	go func() {
		for range pressed {
			shell.Interrupt()
		}
	}()
	return func() { signal.Stop(pressed) }
}
