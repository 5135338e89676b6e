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

func (s *Shell) verbose() *cobra.Command {
	return &cobra.Command{
		Use:               "verbose on|off [SID]",
		Short:             "print each segment sent and received",
		ValidArgsFunction: at(words("on", "off"), s.connections),
		RunE: func(c *cobra.Command, args []string) error {
			if args[0] != "on" && args[0] != "off" {
				return wrong(c, "%q is neither on nor off", args[0])
			}
			req := control.Verbose{On: args[0] == "on", SID: control.AllSockets}
			if len(args) > 1 {
				sid, err := parseSID(c, args[1])
				if err != nil {
					return err
				}
				req.SID = sid
			}
			return s.done(c, control.Order(c.Context(), s.op, req))
		},
	}
}

func (s *Shell) pcap() *cobra.Command {
	c := &cobra.Command{
		Use:   "pcap",
		Short: "capture packets to a pcapng file",
		Args:  cobra.ArbitraryArgs,
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) > 0 {
				return wrong(c, "%q is neither start nor stop%s", args[0], near(c, args[0]))
			}
			return wrong(c, "start or stop is missing")
		},
	}
	var snaplen int
	var force bool
	start := &cobra.Command{
		Use:               "start FILE",
		Short:             "capture every packet of every interface, dropped ones too",
		Args:              positional,
		ValidArgsFunction: at(fileNames),
		RunE: func(c *cobra.Command, args []string) error {
			if snaplen < 0 {
				return wrong(c, "a snaplen of %d", snaplen)
			}
			req := control.PcapStart{File: args[0], Snaplen: snaplen, Overwrite: force}
			return s.done(c, control.Order(c.Context(), s.op, req))
		},
	}
	start.Flags().IntVar(&snaplen, "snaplen", 0, "keep `BYTES` of a packet; 0: all")
	start.Flags().BoolVar(&force, "force", false, "replace a capture that is there")
	stop := s.jsonFlag(&cobra.Command{
		Use:   "stop",
		Short: "end the capture",
		Args:  positional,
		RunE: func(c *cobra.Command, _ []string) error {
			done, err := control.Ask(c.Context(), s.op, control.PcapStop{})
			if err != nil {
				return failed(c, err)
			}
			text := fmt.Sprintf("%d packets in %s", done.Packets, printable(done.File))
			if done.Missed > 0 {
				text += fmt.Sprintf(" (%d missed: the disk was too slow)", done.Missed)
			}
			return s.answer(c, done, text)
		},
	})
	c.AddCommand(start, stop)
	return c
}

func (s *Shell) show() *cobra.Command {
	return s.jsonFlag(&cobra.Command{
		Use:               "show [KEY]",
		Short:             "the settings, or those that begin so",
		ValidArgsFunction: at(s.settingKeys),
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) == 1 && args[0] == "rip" {
				return s.showRIP(c)
			}
			req := control.Show{Key: strings.Join(args, "")}
			list, err := control.Ask(c.Context(), s.op, req)
			if err != nil {
				return s.unset(c, req.Key, err)
			}
			return s.answer(c, list, s.printSettings(list))
		},
	})
}

func (s *Shell) printSettings(list []control.Setting) string {
	wide := 0
	for _, v := range list {
		wide = max(wide, utf8.RuneCountInString(v.Key+" = "+v.Value))
	}
	var b strings.Builder
	for _, v := range list {
		b.WriteString(strings.TrimRight(pad(v.Key+" = "+v.Value, wide)+"  "+v.Doc, " ") + "\n")
	}
	return foldUnder(s.width(), strings.Repeat(" ", wide+2), b.String())
}

func (s *Shell) set() *cobra.Command {
	return s.jsonFlag(&cobra.Command{
		Use:               "set KEY VALUE",
		Short:             "turn a setting that `show` lists",
		Long:              "Turn a setting. These are the KEYs, and their values now:",
		Annotations:       map[string]string{settingsAbout: ""},
		ValidArgsFunction: s.completeSetting,
		RunE: func(c *cobra.Command, args []string) error {
			v, err := control.Ask(c.Context(), s.op, control.Set{Key: args[0], Value: args[1]})
			if err != nil {
				return s.unset(c, args[0], err)
			}
			return s.answer(c, v, v.Key+" = "+v.Value)
		},
	})
}

func (s *Shell) events() *cobra.Command {
	return s.jsonFlag(&cobra.Command{
		Use:   "events",
		Short: "show what the node tells, until Ctrl-C",
		Long: "Show what the node tells, until Ctrl-C: connections, neighbors that come and\n" +
			"go, interfaces that are taken down or up, test packets, what `verbose` asked\n" +
			"for. A session shows it anyway; as JSON it is a line each:\n" +
			"{\"event\": its kind, \"data\": what it is}.",
		RunE: func(c *cobra.Command, _ []string) error {
			s.endless()
			asJSON, _ := c.Flags().GetBool("json")
			switch {
			case asJSON && !(s.cfg.JSON && s.watches()):
				defer s.op.Watch(s.tellJSON)()
			case !s.watches():
				defer s.op.Watch(s.tell)()
			}
			<-c.Context().Done()
			return nil
		},
	})
}

// clearing has a terminal forget what it shows, and what it has shown (xterm's ctlseqs).
const clearing = topLeft + "\x1b[2J\x1b[3J"

func (s *Shell) clear() *cobra.Command {
	return &cobra.Command{
		Use:   "clear",
		Short: "empty the screen (Ctrl-L does too)",
		RunE: func(c *cobra.Command, _ []string) error {
			if s.height() == 0 || s.json(c) {
				return s.done(c, nil) // there is no screen
			}
			return s.screen.raw([]byte(clearing))
		},
	}
}

// deepest is how many files may source each other: a file that sources itself ends there.
const deepest = 16

func (s *Shell) source() *cobra.Command {
	return &cobra.Command{
		Use:               "source FILE",
		Short:             "run the lines of a file",
		ValidArgsFunction: at(fileNames),
		RunE: func(c *cobra.Command, args []string) error {
			return s.sourceFile(c, args[0])
		},
	}
}

func (s *Shell) sleep() *cobra.Command {
	return &cobra.Command{
		Use:   "sleep [T]",
		Short: "wait T seconds (1.5, 150ms, 2m)",
		Long: "Wait T seconds, or a time like 150ms or 2m. Without T it waits until\n" +
			"Ctrl-C, or until the node is told to end: the last line of a script\n" +
			"for a router that should stay.",
		RunE: func(c *cobra.Command, args []string) error {
			var over <-chan time.Time // nil: never
			if len(args) > 0 {
				d, err := duration(args[0])
				if err != nil {
					return wrong(c, "%q is not a time like 1.5 or 150ms", args[0])
				}
				timer := time.NewTimer(d)
				defer timer.Stop()
				over = timer.C
			}
			select {
			case <-over:
				return s.done(c, nil)
			case <-c.Context().Done():
				return c.Context().Err()
			}
		},
	}
}

// duration reads seconds, or a number with Go's units.
func duration(word string) (time.Duration, error) {
	if _, err := strconv.ParseFloat(word, 64); err == nil {
		word += "s"
	}
	d, err := time.ParseDuration(word)
	if err == nil && d < 0 {
		err = fmt.Errorf("negative: %v", d)
	}
	return d, err
}

func (s *Shell) quit() *cobra.Command {
	return &cobra.Command{
		Use:     "quit",
		Aliases: []string{"q", "exit"},
		Short:   "leave",
		RunE: func(c *cobra.Command, _ []string) error {
			if s.interactive() {
				return s.mayLeave()
			}
			err := s.await(c.Context())
			if err != nil {
				s.complain(err)
			} else if err = s.done(c, nil); err != nil {
				return err
			}
			return &quitting{last: err}
		},
	}
}

// mayLeave is a quitting error, but while transfers run only when it is asked for twice.
func (s *Shell) mayLeave() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.jobs) == 0 || s.leaving {
		return &quitting{}
	}
	s.leaving = true
	return fmt.Errorf("transfers still run (%d): `wait` for them, or quit again to abandon them",
		len(s.jobs))
}
