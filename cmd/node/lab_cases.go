package main

import (
	"fmt"

	"github.com/spf13/cobra"
)

// The experiment on founding document 001's three kinds of arrivals has no experiment file.
const (
	casesName  = "reassembly-cases"
	casesAbout = "a segment that is expected next, inside the window, or beyond it"
	casesTitle = "How segments arrive (founding document 001)"
)

// runCases prints how the receiver handles the segments. The experiment has no flags.
func runCases(c *cobra.Command, o *labRunOptions) error {
	for _, flag := range o.changed(c) {
		return misuse(c, fmt.Errorf("--%s: %s takes no flags; `node demo arrivals` takes segments "+
			"of your choice", flag, casesName))
	}
	return playArrivals(c.OutOrStdout(), documentWindow, documentArrivals)
}
