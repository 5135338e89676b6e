package main

import (
	"github.com/spf13/cobra"

	"github.com/tidepool-net/tidepool/internal/repl"
	"github.com/tidepool-net/tidepool/internal/tcp"
)

// documentWindow is the receive buffer of founding document 001's node.
const documentWindow = 65535

func arrivalsCommand() *cobra.Command {
	var window int
	c := &cobra.Command{
		Use:   "arrivals [OFFSET+LENGTH[F] | read]...",
		Short: "show how TCP handles arriving segments",
		Long: "Deliver segments to a TCP connection in virtual time. For each segment, print\n" +
			"its kind (expected next, inside the window, or beyond it), the reason for that,\n" +
			"the answer, and the data that the receiver then holds. The kinds are those of\n" +
			"document 001, a report on a TCP implementation in Go (see README.md).\n" +
			"\n" +
			"Each argument is a segment, OFFSET+LENGTH: where its payload begins in the\n" +
			"stream, and how long it is. An F at the end adds a FIN. The argument `read`\n" +
			"makes the application read the available data. Without arguments, the command\n" +
			"plays the example of that document.",
		Example: "  node demo arrivals\n  node demo arrivals 1000+500 0+1000 read 1500+0F",
		RunE: func(c *cobra.Command, args []string) error {
			steps := documentArrivals
			if len(args) > 0 {
				steps = nil
			}
			for _, arg := range args {
				s, err := parseArrival(arg)
				if err != nil {
					return misuse(c, err)
				}
				steps = append(steps, s)
			}
			return playArrivals(c.OutOrStdout(), window, steps)
		},
	}
	c.Flags().IntVar(&window, "window", documentWindow, "give the receive buffer `N` bytes")
	repl.Limit(c, tcp.MinBuffer, documentWindow, "window")
	return c
}
