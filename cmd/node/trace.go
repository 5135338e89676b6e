package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tidepool-net/tidepool/internal/control"
	"github.com/tidepool-net/tidepool/internal/files"
	"github.com/tidepool-net/tidepool/internal/observe"
	"github.com/tidepool-net/tidepool/internal/repl"
	"github.com/tidepool-net/tidepool/internal/table"
)

func traceCommand() *cobra.Command {
	var each, asJSON bool
	var width int
	c := &cobra.Command{
		Use:   "trace FILE [FILTER...]",
		Short: "draw a captured connection as a ladder",
		Long: "Draw the segments of a connection in a pcapng FILE (- is standard input) as a\n" +
			"ladder, like the shell's `trace`. It draws the first connection that matches\n" +
			"FILTER, which has the syntax of the shell's `capture`. Captures of nodes\n" +
			"include TCP states, windows and drops; those of other programs have the\n" +
			"segments only.",
		Example: "  node trace a.pcapng tcp port 9000\n" +
			"  node ctl A capture all tcp -c 200 -w - | node trace -",
		Args: usageArgs(cobra.MinimumNArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			in, name := c.InOrStdin(), "stdin"
			if args[0] != "-" {
				f, err := files.Input(args[0])
				if err != nil {
					return &usageError{err}
				}
				defer f.Close()
				in, name = f, args[0]
			}
			t := newConsole(in, c.OutOrStdout(), c.ErrOrStderr())
			if width == 0 && t.width != nil {
				width = t.width()
			}
			cfg := table.LadderConfig{Width: width, Color: t.color, Plain: t.plain, Each: each}
			err := traceFile(in, strings.Join(args[1:], " "), t, cfg, asJSON)
			if err != nil && !errors.Is(err, control.ErrUsage) { // the error is not in the filter
				err = fmt.Errorf("%s: %w", name, err)
			}
			return err
		},
	}
	c.Flags().BoolVar(&each, "each", false, "print a line for each segment")
	c.Flags().IntVar(&width, "width", 0, "width in `COLUMNS`; 0: the terminal's width, or 80")
	repl.Limit(c, 0, repl.Unlimited, "width")
	c.Flags().BoolVar(&asJSON, "json", false, "print a line of JSON for each segment")
	return c
}

func traceFile(in io.Reader, filter string, t *console, cfg table.LadderConfig, asJSON bool) error {
	var failure error
	ladder := table.NewLadder(cfg, func(line string) {
		if _, err := io.WriteString(t.out, line+"\n"); err != nil && failure == nil {
			failure = err
		}
	})
	done, err := observe.TraceFile(in, filter, func(s control.TracedSegment) {
		switch {
		case !asJSON:
			ladder.Add(&s)
		case failure == nil:
			failure = jsonEvent(t.out, "segment", s)
		}
	})
	ladder.Flush()
	switch {
	case err != nil:
		return err
	case failure != nil:
		return failure
	case asJSON:
		return jsonEvent(t.out, "result", done)
	case done.Segments == 0:
		return fmt.Errorf("no TCP segment in the capture matches %q", filter)
	}
	return nil
}

func jsonEvent(out io.Writer, event string, data any) error {
	return json.NewEncoder(out).Encode(struct {
		Event string `json:"event"`
		Data  any    `json:"data"`
	}{event, data})
}
