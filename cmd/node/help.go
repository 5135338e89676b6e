package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tidepool-net/tidepool/internal/repl"
)

// helpCommand returns the command `node help`. An unknown topic is a usage error. If the topic is a
// shell command, the error says how to get its help.
func helpCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "help [COMMAND...]",
		Short: "list the commands, or explain a command",
		Long: "Explain a command, or list all commands. For the commands of a node's shell,\n" +
			"use `node ctl NODE help COMMAND`.",
		ValidArgsFunction: completeTopics,
		RunE: func(c *cobra.Command, args []string) error {
			about, rest, err := c.Root().Find(args)
			if err == nil && len(rest) == 0 {
				about.InitDefaultHelpFlag() // adds --help to the list of flags
				return about.Help()
			}
			return &usageError{unknownTopic(args)}
		},
	}
}

func unknownTopic(args []string) error {
	topic := strings.Join(args, " ")
	if !slices.ContainsFunc(repl.Manual(), func(e repl.Entry) bool {
		name, _, _ := strings.Cut(e.Use, " ")
		return name == args[0] || slices.Contains(e.Aliases, args[0])
	}) {
		return fmt.Errorf("no command %q; `node help` lists them", topic)
	}
	return fmt.Errorf("%q is a command of a node's shell: use `node ctl NODE help %s` or "+
		"`node run FILE.lnx -c 'help %s'`", args[0], args[0], args[0])
}

func completeTopics(
	c *cobra.Command, args []string, prefix string,
) (names []cobra.Completion, only cobra.ShellCompDirective) {
	only = cobra.ShellCompDirectiveNoFileComp
	about, rest, err := c.Root().Find(args)
	if err != nil || len(rest) > 0 {
		return nil, only
	}
	for _, sub := range about.Commands() {
		if sub.IsAvailableCommand() && strings.HasPrefix(sub.Name(), prefix) {
			names = append(names, cobra.CompletionWithDesc(sub.Name(), sub.Short))
		}
	}
	return names, only
}
