package main

import (
	"fmt"

	"github.com/spf13/cobra"
)

// The experiment of founding document 001's three kinds of arrivals, which has no file.
const (
	casesName  = "reassembly-cases"
	casesAbout = "a segment that is expected next, inside the window, or beyond it"
	casesTitle = "How segments arrive (founding document 001)"
)

// runCases shows what becomes of segments. There is nothing random in it, and nothing to choose.
func runCases(c *cobra.Command, o *labRunOptions) error {
	for _, flag := range o.changed(c) {
		return misuse(c, fmt.Errorf("--%s: %s takes no flags; `node demo arrivals` takes segments "+
			"of your choice", flag, casesName))
	}
	if err := playArrivals(c.OutOrStdout(), documentWindow, documentArrivals); err != nil {
		return fmt.Errorf("%s: %w", commandPath(c), err)
	}
	return nil
}
