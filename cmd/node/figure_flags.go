package main

import (
	"github.com/spf13/cobra"

	"github.com/tidepool-net/tidepool/internal/lab/figure"
	"github.com/tidepool-net/tidepool/internal/repl"
)

func styleFlags(c *cobra.Command, s *figure.Style) {
	c.Flags().Func("figure-size",
		"`SIZE` of the figures, such as 3.5in, 88mm or 8.8x6cm (default 7in wide)", s.SetSize)
	c.Flags().Func("font", "`FONT` of the figures: sans, serif or mono (default sans)",
		s.SetFont)
	repl.CompleteFlag(c, "font", "sans", "serif", "mono")
}
