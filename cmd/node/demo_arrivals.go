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
		Short: "show what becomes of segments as they arrive",
		Long: "Have segments arrive at a TCP connection, in virtual time, and print of each\n" +
			"which of founding document 001's kinds it is, and why: expected next, inside the\n" +
			"window, or beyond it; and the answer, and what is held and can be read then.\n\n" +
			"Without arguments it is the document's own story. Otherwise each argument is a\n" +
			"segment, by the offset of its text from the stream's first byte and its length,\n" +
			"with an F for a FIN behind it; or read, to have the program read what there is.",
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
				return misuse(c, fmt.Errorf("--window %d: want %d to %d",
					window, tcp.MinBuffer, documentWindow))
			}
			if err := playArrivals(c.OutOrStdout(), window, steps); err != nil {
				return fmt.Errorf("demo arrivals: %w", err)
			}
			return nil
		},
	}
	c.Flags().IntVar(&window, "window", documentWindow, "bytes of the receive buffer")
	return c
}
