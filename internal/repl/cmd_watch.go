package repl

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tidepool-net/tidepool/internal/control"
)

const aboutWatch = `Repeat COMMAND every 2 seconds, or every -n seconds (at least 0.1), until q or
Ctrl-C. A terminal shows each answer in place of the last, with the changes
highlighted. Elsewhere the answers follow each other, with --json one per line.
-c N stops after N answers. Write -n, -c and --json before COMMAND; -n SEC may
also come last.`

// watchFlags are the flags before the command of `watch`.
type watchFlags struct {
	every time.Duration
	count int
	json  bool
	line  string
}

const (
	watchPeriod = 2 * time.Second
	leastPeriod = 100 * time.Millisecond
	mostPeriod  = 24 * time.Hour
)

func repeatCommand(s *Shell) *cobra.Command {
	return &cobra.Command{
		Use:                "watch [-n SEC] [-c N] [--json] COMMAND...",
		Short:              "repeat a command, in place",
		Long:               aboutWatch,
		DisableFlagParsing: true,
		ValidArgsFunction: func(_ *cobra.Command, args []string, prefix string) (
			[]cobra.Completion, cobra.ShellCompDirective,
		) {
			return s.Complete(strings.Join(append(slices.Clone(args), prefix), " ")),
				cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(c *cobra.Command, args []string) error {
			o, err := readWatch(s, c, strings.Join(args, " "))
			if err != nil {
				return err
			}
			return watchLine(s, c, o)
		},
	}
}

// endless lists commands that `watch` does not repeat, because they may take any time or change the
// session.
var endless = []string{
	"watch", "events", "trace", "source", "quit", "sleep", "wait", "sendfile", "recvfile", "recv",
}

// readWatch parses the flags before the command, and -n SEC at the end of the line.
func readWatch(s *Shell, c *cobra.Command, text string) (*watchFlags, error) {
	o := &watchFlags{every: watchPeriod, json: s.env.cfg.JSON}
	number := func(flag string) (string, error) {
		word, more := cut(strings.TrimLeft(text, " \t"))
		if text = more; word == "" {
			return "", wrong(c, "%s needs a value", flag)
		}
		return word, nil
	}
	for {
		text = strings.TrimLeft(text, " \t")
		if !strings.HasPrefix(text, "-") {
			break
		}
		flag, more := cut(text)
		text = more
		switch flag {
		case "--json":
			o.json = true
		case "-n", "--interval":
			word, err := number(flag)
			if err == nil {
				err = o.setPeriod(c, word)
			}
			if err != nil {
				return nil, err
			}
		case "-c", "--count":
			word, err := number(flag)
			if err != nil {
				return nil, err
			}
			if o.count, err = parseCount(c, word, 1, 1<<30); err != nil {
				return nil, err
			}
		default:
			return nil, wrong(c, "unknown flag: %s", flag)
		}
	}
	words := strings.Fields(text)
	if n := len(words); n > 2 && words[n-2] == "-n" {
		if _, err := duration(words[n-1]); err == nil {
			if err := o.setPeriod(c, words[n-1]); err != nil {
				return nil, err
			}
			text = text[:strings.LastIndex(text, "-n")]
			words = words[:n-2]
		}
	}
	if len(words) == 0 {
		return nil, wrong(c, "COMMAND is missing")
	}
	about := lookup(c.Root(), words[0])
	if about == nil {
		_, err := arguments(c.Root(), text) // returns the error for an unknown command
		return nil, err
	}
	if slices.Contains(endless, about.Name()) ||
		about.Name() == "capture" && (len(words) < 2 || words[1] != "list") {
		return nil, wrong(c, "%s cannot be repeated", about.Name())
	}
	o.line = strings.TrimRight(text, " \t")
	return o, nil
}

func (o *watchFlags) setPeriod(c *cobra.Command, word string) error {
	d, err := duration(word)
	if err != nil || d < leastPeriod || d > mostPeriod {
		return wrong(c, "-n %s: must be %v to %v seconds", word, leastPeriod.Seconds(),
			mostPeriod.Seconds())
	}
	o.every = d
	return nil
}

type watched struct {
	At      time.Time       `json:"at"`
	Command string          `json:"command"`
	Answer  json.RawMessage `json:"answer,omitempty"`
	Problem string          `json:"problem,omitempty"`
}

func watchLine(s *Shell, c *cobra.Command, o *watchFlags) error {
	s.env.endless()
	ctx, leave := context.WithCancel(c.Context())
	defer leave()
	tick := time.NewTicker(o.every)
	defer tick.Stop()
	var f *frame
	if s.env.height() > 0 && !o.json {
		f = &frame{screen: s.env.screen}
		f.begin()
		defer f.end()
		defer s.env.keys.each(func(key byte) {
			if key == 'q' || key == 'Q' {
				leave()
			}
		})()
	}
	for n := 1; ; n++ {
		at := time.Now()
		text, err := once(ctx, s, o)
		switch {
		case ctx.Err() != nil:
			return nil // the user pressed q or Ctrl-C
		case errors.Is(err, control.ErrUsage):
			return err
		case o.json:
			err = watchJSON(s, at, o, text, err)
		case f != nil:
			f.resize(s.env.width(), s.env.height())
			f.paint(watchTitle(s, at, o), withProblem(text, err))
			err = nil
		default:
			s.env.screen.talk(watchTitle(s, at, o))
			s.env.screen.data(withProblem(text, err))
			err = nil
		}
		if err == nil {
			err = s.env.screen.failed()
		}
		if err != nil || n == o.count {
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
	}
}

func once(ctx context.Context, s *Shell, o *watchFlags) (string, error) {
	var out bytes.Buffer
	cfg := s.env.cfg
	cfg.JSON, cfg.Color, cfg.Height = o.json, false, nil
	inner := newShell(cfg, s.env.node, &screen{out: &out, err: &out})
	inner.alone = true
	err := inner.Execute(ctx, o.line)
	if err == nil {
		err = inner.await(ctx)
	}
	inner.abandon()
	return out.String(), err
}

func withProblem(text string, err error) string {
	if err != nil {
		text += err.Error() + "\n"
	}
	return text
}

func watchTitle(s *Shell, at time.Time, o *watchFlags) string {
	every := strconv.FormatFloat(o.every.Seconds(), 'f', -1, 64)
	return fmt.Sprintf("Every %ss: %s    %s: %s", every, printable(o.line), s.env.node.Name,
		at.Format(time.DateTime))
}

func watchJSON(s *Shell, at time.Time, o *watchFlags, text string, err error) error {
	w := watched{At: at, Command: o.line}
	switch lines := strings.Split(strings.TrimSpace(text), "\n"); {
	case err != nil:
		w.Problem = err.Error()
	case len(lines) == 1 && json.Valid([]byte(lines[0])):
		w.Answer = json.RawMessage(lines[0])
	default: // the command has no JSON output
		w.Answer, _ = json.Marshal(text) // a string always encodes
	}
	return s.env.line("answer", w)
}
