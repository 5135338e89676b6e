package main

import (
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/tidepool-net/tidepool/internal/lab/emulation"
)

// These internal subcommands of `node lab` run as processes of a real-time run.
const (
	endWord    = "end"
	middleWord = "middle"
)

// labProcessCommands are the processes of `node lab run --real`. They are not for users.
func labProcessCommands() []*cobra.Command {
	process := func(use, short string, serve func(c *cobra.Command) error) *cobra.Command {
		return &cobra.Command{
			Use: use, Short: short, Hidden: true, Args: usageArgs(cobra.NoArgs),
			RunE: func(c *cobra.Command, _ []string) error {
				// The parent process decides when this one ends.
				signal.Ignore(os.Interrupt, syscall.SIGHUP)
				return serve(c)
			},
		}
	}
	return []*cobra.Command{
		process(endWord, "run one end of a flow in real time", func(c *cobra.Command) error {
			return emulation.Serve(c.InOrStdin(), c.OutOrStdout(), emulation.Arms())
		}),
		process(middleWord, "run the path of a real-time run", func(c *cobra.Command) error {
			return emulation.ServeMiddle(c.InOrStdin(), c.OutOrStdout())
		}),
	}
}
