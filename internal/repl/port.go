package repl

import (
	"context"
	"slices"
	"strconv"

	"github.com/spf13/cobra"
)

// closePort is the command that ends what a transport over UDP has on a port. Ports completes
// its argument, and end is what it asks of the node.
func closePort(
	ports func(context.Context, string) []string, end func(context.Context, uint16) error,
) *cobra.Command {
	return &cobra.Command{
		Use:   "close PORT",
		Short: "end what is on a port, and free it",
		Args:  positional,

		ValidArgsFunction: at(ports),
		RunE: func(c *cobra.Command, args []string) error {
			port, err := parsePort(c, args[0])
			if err != nil {
				return err
			}
			return failed(c, end(c.Context(), port))
		},
	}
}

// portWords are ports for a completion, each once.
func portWords(ports []uint16) []string {
	var words []string
	for _, port := range ports {
		if w := strconv.Itoa(int(port)); !slices.Contains(words, w) {
			words = append(words, w)
		}
	}
	return words
}
