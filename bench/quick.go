//go:build linux

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/tidepool-net/tidepool/bench/lead"
	"github.com/tidepool-net/tidepool/bench/netns"
	"github.com/tidepool-net/tidepool/bench/report"
)

// quickRounds is the time after which only the first round of a case may begin. That of the last
// case, and then stopping all processes, take up to ten more seconds.
const quickRounds = 45 * time.Second

// quick runs the most important measurements within a minute.
func quick(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("quick", flag.ContinueOnError)
	span := flags.Duration("for", time.Second, "how long each run counts")
	rounds := flags.Int("rounds", 3, "runs of each case")
	only := flags.String("only", "", "run only the cases and peers whose name contains `TEXT`")
	if err := parse(flags, args); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Minute)
	defer cancel()
	s := &session{
		turns: lead.Turns{
			Rounds: *rounds, Log: os.Stderr, Until: time.Now().Add(quickRounds),
		},
		span: *span, out: os.Stdout, only: *only,
	}
	if err := s.check(); err != nil {
		return err
	}
	defer s.close()
	netns.Sweep(ctx)
	return s.quick(ctx)
}

// session is one run of the program.
type session struct {
	turns   lead.Turns
	span    time.Duration
	out     io.Writer // results, one line each
	only    string
	whole   bool          // include the slow cases
	brief   bool          // but exclude those that take minutes
	root    string        // the repository's root
	program *lead.Program // the built node command
	rows    [2]*netns.Row // without offloads and with; created on first use
}

func (s *session) logf(format string, args ...any) {
	_, _ = fmt.Fprintf(s.turns.Log, format, args...)
}

func (s *session) close() {
	for _, r := range s.rows {
		if r != nil {
			r.Close(context.Background())
		}
	}
}

// kernelRow returns the namespaces, or an error that says why they cannot be created.
func (s *session) kernelRow(ctx context.Context, offloads bool) (*netns.Row, error) {
	if lacking := netns.Lacking(); lacking != "" {
		return nil, errors.New("needs " + lacking)
	}
	at := 0
	if offloads {
		at = 1
	}
	if s.rows[at] == nil {
		r, err := netns.New(ctx, offloads)
		if err != nil {
			return nil, errors.New("needs network namespaces: " + err.Error())
		}
		s.rows[at] = r
	}
	return s.rows[at], nil
}

func (s *session) quick(ctx context.Context) error {
	for _, c := range s.streams() {
		if !c.quick {
			continue
		}
		if err := s.compare(ctx, &c); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// compare measures one case and prints its lines.
func (s *session) compare(ctx context.Context, c *streamCase) error {
	rows, skipped := s.measure(ctx, c)
	for _, r := range rows {
		if err := report.Line(s.out, struct {
			report.Row
			Verdict string `json:"verdict,omitempty"` // "reached" or "MISSED"
		}{r, r.Verdict()}); err != nil {
			return err
		}
	}
	for _, k := range skipped {
		if err := report.Line(s.out, k); err != nil {
			return err
		}
	}
	return ctx.Err()
}
