package main

import (
	"bytes"
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/tidepool-net/tidepool/internal/lab/figure"
	"github.com/tidepool-net/tidepool/internal/lab/result"
)

func styleFlags(c *cobra.Command, s *figure.Style) {
	c.Flags().Func("figure-size",
		"`SIZE` of the figures, such as 3.5in, 88mm or 8.8x6cm (default 7in wide)", s.SetSize)
	c.Flags().Func("font", "`FONT` of the figures: sans, serif or mono (default sans)",
		s.SetFont)
	choices(c, "font", "sans", "serif", "mono")
}

func figureFiles(name string) []string {
	var files []string
	for _, format := range figure.Formats {
		files = append(files, name+"."+format)
	}
	return files
}

func writeFigure(dir, name string, write func(*bytes.Buffer, string) error) error {
	for i, file := range figureFiles(name) {
		var b bytes.Buffer
		if err := write(&b, figure.Formats[i]); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		if err := result.WriteFile(filepath.Join(dir, file), b.Bytes()); err != nil {
			return err
		}
	}
	return nil
}
