package repl

import (
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/tidepool-net/tidepool/internal/control"
)

func verboseCommand(e *env) *cobra.Command {
	return &cobra.Command{
		Use:               "verbose on|off [SID]",
		Short:             "print sent and received segments",
		ValidArgsFunction: at(words("on", "off"), e.connections),
		RunE: func(c *cobra.Command, args []string) error {
			if args[0] != "on" && args[0] != "off" {
				return wrong(c, "%q is neither on nor off", args[0])
			}
			req := control.Verbose{On: args[0] == "on", SID: control.AllSockets}
			if len(args) > 1 {
				req.SID = sidOf(args[1])
			}
			return e.done(c, control.Order(c.Context(), e.op, req))
		},
	}
}

func pcapCommand(e *env) *cobra.Command {
	var req control.PcapStart
	start := &cobra.Command{
		Use:               "start FILE",
		Short:             "capture the packets of all interfaces, including dropped packets",
		Args:              positional,
		ValidArgsFunction: at(fileNames),
		RunE: func(c *cobra.Command, args []string) error {
			req.File = args[0]
			return e.done(c, control.Order(c.Context(), e.op, req))
		},
	}
	start.Flags().IntVar(&req.Snaplen, "snaplen", 0, "keep `BYTES` of a packet; 0: all")
	start.Flags().BoolVar(&req.Overwrite, "force", false, "replace an existing capture")
	Limit(start, 0, Unlimited, "snaplen")
	stop := e.jsonFlag(&cobra.Command{
		Use:   "stop",
		Short: "stop the capture",
		Args:  positional,
		RunE: func(c *cobra.Command, _ []string) error {
			return show(e, c, control.PcapStop{}, func(done control.Capture) string {
				text := fmt.Sprintf("%d packets in %s", done.Packets, printable(done.File))
				if done.Missed > 0 {
					text += fmt.Sprintf(" (%d missed: the disk was too slow)", done.Missed)
				}
				return text
			})
		},
	})
	return verbsOf(&cobra.Command{
		Use:   "pcap",
		Short: "capture all packets into a pcapng file",
	}, start, stop)
}

func showCommand(e *env) *cobra.Command {
	return e.jsonFlag(&cobra.Command{
		Use:   "show [KEY]",
		Short: "list all settings, or those of KEY",
		Long: "List all settings, or only those that begin with KEY: `show tcp` lists the\n" +
			"settings of TCP. `show rip` prints the same as `rip`.",
		ValidArgsFunction: at(e.settingKeys),
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) == 1 && args[0] == "rip" {
				return showRIP(e, c)
			}
			req := control.Show{Key: strings.Join(args, "")}
			list, err := control.Ask(c.Context(), e.op, req)
			if err != nil {
				return unset(e, c, req.Key, err)
			}
			return e.answer(c, list, printSettings(e, list))
		},
	})
}

func printSettings(e *env, list []control.Setting) string {
	wide := 0
	for _, v := range list {
		wide = max(wide, utf8.RuneCountInString(v.Key+" = "+v.Value))
	}
	var b strings.Builder
	for _, v := range list {
		b.WriteString(strings.TrimRight(pad(v.Key+" = "+v.Value, wide)+"  "+v.Doc, " ") + "\n")
	}
	return foldUnder(e.width(), strings.Repeat(" ", wide+2), b.String())
}

func setCommand(e *env) *cobra.Command {
	return e.jsonFlag(&cobra.Command{
		Use:               "set KEY VALUE",
		Short:             "change a setting; `show` lists them",
		Long:              "Change a setting. These are the KEYs and their current values:",
		Annotations:       map[string]string{settingsAbout: ""},
		ValidArgsFunction: e.completeSetting,
		RunE: func(c *cobra.Command, args []string) error {
			v, err := control.Ask(c.Context(), e.op, control.Set{Key: args[0], Value: args[1]})
			if err != nil {
				return unset(e, c, args[0], err)
			}
			return e.answer(c, v, v.Key+" = "+v.Value)
		},
	})
}

func eventsCommand(s *Shell) *cobra.Command {
	return s.env.jsonFlag(&cobra.Command{
		Use:   "events",
		Short: "print events until Ctrl-C",
		Long: "Print the node's events until Ctrl-C: connections, neighbors that appear and\n" +
			"disappear, interfaces that go up or down, test packets, and the output of\n" +
			"`verbose`. A shell prints events without this command, too. With --json, each\n" +
			"event is a line: {\"event\": kind, \"data\": content}.",
		RunE: func(c *cobra.Command, _ []string) error {
			s.env.endless()
			asJSON, _ := c.Flags().GetBool("json")
			switch {
			case asJSON && !(s.env.cfg.JSON && s.watches()):
				defer s.env.op.Watch(s.tellJSON)()
			case !s.watches():
				defer s.env.op.Watch(s.printEvent)()
			}
			<-c.Context().Done()
			return nil
		},
	})
}

// clearing clears a terminal's screen and scrollback (xterm's ctlseqs).
const clearing = topLeft + "\x1b[2J\x1b[3J"

func clearCommand(e *env) *cobra.Command {
	return &cobra.Command{
		Use:   "clear",
		Short: "clear the screen (also Ctrl-L)",
		RunE: func(c *cobra.Command, _ []string) error {
			if e.height() == 0 || e.json(c) {
				return e.done(c, nil) // the output is not a terminal
			}
			return e.screen.raw([]byte(clearing))
		},
	}
}

// maxDepth limits nested `source` commands, so that a file cannot source itself for ever.
const maxDepth = 16

func sourceCommand(s *Shell) *cobra.Command {
	return &cobra.Command{
		Use:               "source FILE",
		Short:             "run the lines of a file",
		ValidArgsFunction: at(fileNames),
		RunE: func(c *cobra.Command, args []string) error {
			return sourceFile(s, c, args[0])
		},
	}
}

func sleepCommand(e *env) *cobra.Command {
	return &cobra.Command{
		Use:   "sleep [T]",
		Short: "wait T seconds (1.5, 150ms, 2m)",
		Long: "Wait T seconds, or a time like 150ms or 2m. Without T it waits until Ctrl-C,\n" +
			"or until the node is stopped. The script of a router can end with it, so that\n" +
			"the router keeps running.",
		RunE: func(c *cobra.Command, args []string) error {
			var over <-chan time.Time // end of the wait; nil: no time limit
			if len(args) > 0 {
				d, err := duration(args[0])
				if err != nil {
					return wrong(c, "%q is not a time like 1.5 or 150ms", args[0])
				}
				over = time.After(d)
			}
			select {
			case <-over:
				return e.done(c, nil)
			case <-c.Context().Done():
				return c.Context().Err()
			}
		},
	}
}

// duration parses a number of seconds, or a duration with Go's units.
func duration(word string) (time.Duration, error) {
	if _, err := strconv.ParseFloat(word, 64); err == nil {
		word += "s"
	}
	d, err := time.ParseDuration(word)
	if err == nil && d < 0 {
		err = fmt.Errorf("%v: must not be negative", d)
	}
	return d, err
}

func quitCommand(s *Shell) *cobra.Command {
	return &cobra.Command{
		Use:     "quit",
		Aliases: []string{"q", "exit"},
		Short:   "leave the shell",
		RunE: func(c *cobra.Command, _ []string) error {
			if s.env.interactive() {
				return s.mayLeave()
			}
			err := s.await(c.Context())
			if err != nil {
				s.complain(err)
			} else if err = s.env.done(c, nil); err != nil {
				return err
			}
			return &quitError{last: err}
		},
	}
}
