package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tidepool-net/tidepool/internal/control"
	"github.com/tidepool-net/tidepool/internal/diagnostic"
	"github.com/tidepool-net/tidepool/internal/lab/plan"
	"github.com/tidepool-net/tidepool/internal/lnx"
	"github.com/tidepool-net/tidepool/internal/repl"
	"github.com/tidepool-net/tidepool/netns"
)

// statuses are the program's exit statuses.
const statuses = "0 ok, 1 failed, 2 wrong usage or configuration, 130 Ctrl-C,\n" +
	"143 SIGTERM, 141 when standard output is closed"

// run executes the program and returns its exit status, one of statuses.
func run(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	root := rootCommand()
	root.SetIn(stdin)
	root.SetOut(stdout)
	root.SetErr(stderr)
	c := root
	args, err := shorthand(root, args)
	if last := len(args) - 1; last > 0 && strings.HasPrefix(args[0], cobra.ShellCompRequestCmd) &&
		!repl.FlagsFit(rootCommand(), args[1:last]) {
		_, err = fmt.Fprintf(stdout, ":%d\n", cobra.ShellCompDirectiveNoFileComp)
	} else if err == nil {
		root.SetArgs(args)
		c, err = root.ExecuteContextC(context.Background())
		if asJSON, _ := c.Flags().GetBool("json"); asJSON {
			err = answerFailure(c, stdout, err)
		}
	}
	if text := explain(c, err); text != "" {
		// If this write fails, there is nowhere to report it.
		_, _ = io.WriteString(stderr, text)
	}
	return exitCode(err)
}

func rootCommand() *cobra.Command { return rootCommandAs(called()) }

// rootCommandAs returns the program's commands. Their help texts use name as the program's name.
func rootCommandAs(name string) *cobra.Command {
	root := &cobra.Command{
		Use:   programName(),
		Short: "A TCP/IP host or router in user space",
		Long: "A TCP/IP host or router in user space. Its links are UDP sockets, and an .lnx\n" +
			"file describes the node. `node FILE.lnx` is short for `node run FILE.lnx`, and\n" +
			"`node --version` for `node version`.\n\nExit status: " + statuses + ".",
		Args:          usageArgs(cobra.NoArgs),
		Annotations:   map[string]string{cobra.CommandDisplayNameAnnotation: name},
		SilenceErrors: true,
		SilenceUsage:  true,
		RunE:          func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		return misuse(c, flagError(err))
	})
	root.AddCommand(runCommand(), netCommand(), attachCommand(), ctlCommand(), socksCommand(),
		validateCommand(), versionCommand(), demoCommand(), labCommand(), traceCommand(),
		examineCommand(), hubCommand(), manCommand(), linkCommand(), inCommand())
	root.AddCommand(mahimahiCommands()...)
	root.SetHelpCommand(helpCommand())
	root.InitDefaultCompletionCmd()
	if c, _, err := root.Find([]string{"completion"}); err == nil && c != root {
		c.Short = "write a script that completes commands in a shell"
		c.Args = usageArgs(cobra.NoArgs)
		c.RunE = func(c *cobra.Command, _ []string) error { return c.Help() }
	}
	nameAll(root, name)
	return root
}

// shorthand accepts a file in place of a command: `node A.lnx` runs the file, as the course's nodes
// do, and so does `node --config A.lnx`, which the course's scripts use.
func shorthand(root *cobra.Command, args []string) ([]string, error) {
	if len(args) == 0 {
		return args, nil
	}
	first := args[0]
	if first == "--version" { // most programs accept this flag
		return slices.Concat([]string{"version"}, args[1:]), nil
	}
	if first == "--config" && len(args) > 1 {
		return slices.Concat([]string{"run"}, args[1:]), nil
	}
	if strings.HasPrefix(first, "-") {
		if slices.ContainsFunc(args, isFile) {
			return slices.Concat([]string{"run"}, args), nil
		}
		return args, nil
	}
	if c, rest, err := root.Find(args); err == nil && c != root {
		if c.HasSubCommands() && len(rest) > 0 && rest[0] == "help" { // `node lab help run`
			path := args[:len(args)-len(rest)]
			return slices.Concat([]string{"help"}, path, rest[1:]), nil
		}
		return args, nil
	}
	switch {
	case first == "help" || first == "completion" || strings.HasPrefix(first, "__complete"):
		return args, nil
	case isFile(first):
		return slices.Concat([]string{"run"}, args), nil
	}
	return nil, misuse(root, fmt.Errorf("%q is neither a command nor an .lnx file%s", first,
		didYouMean(root, first)))
}

func didYouMean(c *cobra.Command, word string) string {
	c.SuggestionsMinimumDistance = 2
	if near := c.SuggestionsFor(word); len(near) > 0 {
		return "; did you mean " + diagnostic.OneOf(near) + "?"
	}
	return ""
}

func isFile(arg string) bool {
	if filepath.Ext(arg) == ".lnx" {
		return true
	}
	info, err := os.Stat(arg)
	return err == nil && info.Mode().IsRegular()
}

// usageError is a control.ErrUsage whose text is its cause's.
type usageError struct{ cause error }

func (e *usageError) Error() string   { return e.cause.Error() }
func (e *usageError) Unwrap() []error { return []error{e.cause, control.ErrUsage} }

func misuse(c *cobra.Command, err error) error {
	format := "%w (see `%s --help`)"
	if strings.Contains(err.Error(), "\n") {
		format = "%w\nsee `%s --help`" // the hint follows the excerpt
	}
	return &usageError{fmt.Errorf(format, err, c.CommandPath())}
}

// flagError adds the valid values to the error of a flag.
func flagError(err error) error {
	bad, ok := errors.AsType[*pflag.InvalidValueError](err)
	if !ok {
		return err
	}
	name, kind := bad.GetFlag().Name, bad.GetFlag().Value.Type()
	_, limited := errors.AsType[repl.ValueError](bad)
	switch {
	case limited && kind != "string":
		return fmt.Errorf("--%s %s: %w", name, bad.GetValue(), errors.Unwrap(bad))
	case limited || kind == "func":
		return fmt.Errorf("--%s %q: %w", name, bad.GetValue(), errors.Unwrap(bad))
	}
	want := map[string]string{
		"int": "a whole number", "int64": "a whole number", "uint64": "a whole number, 0 or more",
		"float64": "a number", "bool": "true or false",
		"duration": "a time like 10s or 1m30s", "": "debug, info, warn or error",
		"stringToString": "PROTOCOL=PROGRAM",
	}[kind]
	if want == "" {
		return err
	}
	return fmt.Errorf("--%s %q: must be %s", name, bad.GetValue(), want)
}

// usageArgs converts the error of an argument check to a usage error.
func usageArgs(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		err := check(c, args)
		if err == nil {
			return nil
		}
		if c.HasSubCommands() {
			return misuse(c, fmt.Errorf("unknown command %q%s", args[0], didYouMean(c, args[0])))
		}
		_, list, _ := strings.Cut(c.Use, " ")
		list, _, _ = strings.Cut(list, " [flags]")
		names := strings.Fields(list)
		if len(args) < len(names) && names[len(args)][0] != '[' {
			err = fmt.Errorf("%s is missing", strings.TrimSuffix(names[len(args)], "..."))
		} else if len(args) > len(names) {
			err = fmt.Errorf("unexpected argument: %q", strings.Join(args[len(names):], " "))
		}
		return misuse(c, err)
	}
}

// printedError marks an error that was already printed.
type printedError struct{ error }

func (p printedError) Unwrap() error { return p.error }

// signalError says which signal ended the program.
type signalError struct{ signal os.Signal }

func (s signalError) Error() string { return s.signal.String() }

// explain returns the part of a command's error that the program has not printed yet.
func explain(c *cobra.Command, err error) string {
	if err == nil || errors.Is(err, repl.ErrInterrupted) {
		return ""
	}
	if s, ok := errors.AsType[signalError](err); ok &&
		(s.signal == os.Interrupt || s.signal == syscall.SIGPIPE) {
		return "" // the user pressed Ctrl-C, or the reader is gone
	}
	if _, ok := errors.AsType[printedError](err); ok {
		return ""
	}
	if _, ok := errors.AsType[netns.StatusError](err); ok {
		return "" // the external program has said what failed
	}
	if bad, ok := errors.AsType[lnx.Errors](err); ok {
		before, behind, _ := strings.Cut(err.Error(), bad.Error())
		if !strings.HasSuffix(before, "\n") { // not a prefix of whole lines
			before = ""
		}
		return before + bad.Error() + behind + "\n"
	}
	if bad, ok := errors.AsType[plan.Errors](err); ok {
		return bad.Error() + "\n"
	}
	return commandPath(c) + ": " + named(err.Error()) + "\n"
}

func exitCode(err error) int {
	if s, ok := errors.AsType[signalError](err); ok {
		if number, ok := s.signal.(syscall.Signal); ok {
			return 128 + int(number)
		}
	}
	if _, ok := errors.AsType[machineError](err); ok {
		return 1
	}
	if s, ok := errors.AsType[netns.StatusError](err); ok {
		return int(s)
	}
	if e, ok := errors.AsType[*netns.ExecError](err); ok {
		return e.Status()
	}
	if _, ok := errors.AsType[lnx.Errors](err); ok {
		return 2
	}
	return repl.ExitCode(err)
}
