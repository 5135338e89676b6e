package main

import (
	"fmt"

	"github.com/spf13/cobra"

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
			"its kind in the terms of founding document 001 (expected next, inside the\n" +
			"window, beyond it), the reason, the answer, and the data that the receiver\n" +
			"then holds.\n\n" +
			"Without arguments it plays the document's example. Otherwise each argument is\n" +
			"a segment, OFFSET+LENGTH: the offset of its payload from the first byte of the\n" +
			"stream, and its length; an F adds a FIN. The argument `read` makes the\n" +
			"application read the available data.",
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
			if window < tcp.MinBuffer || window > documentWindow {
				return misuse(c, fmt.Errorf("--window %d: must be %d to %d",
					window, tcp.MinBuffer, documentWindow))
			}
			if err := playArrivals(c.OutOrStdout(), window, steps); err != nil {
				return fmt.Errorf("demo arrivals: %w", err)
			}
			return nil
		},
	}
	c.Flags().IntVar(&window, "window", documentWindow, "give the receive buffer `N` bytes")
	return c
}
