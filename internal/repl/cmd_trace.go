package repl

import (
	"cmp"
	"context"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/tidepool-net/tidepool/internal/control"
	text "github.com/tidepool-net/tidepool/internal/table"
)

const aboutTrace = `Follow a connection and draw its segments until it closes, or Ctrl-C. CONN is
the number of a connection, or of a listener for its next connection. CONN may
also be a filter of "capture", such as "tcp port 80": the command then follows
the connection of the first matching segment, even if this router only forwards
it. After "set tcp.recorder 64" the ladder of a connection of this node begins
with the last 64 segments before the command.

Sequence numbers count from 0 at the SYN. Data is first:last+1 (bytes). ack and
win are shown when they change. The margin shows the state, cwnd in segments,
recovery and loss. A burst of segments is one arrow, "12x"; --each draws a line
for each segment. A double line is a retransmission; a cross is a dropped
segment, with the reason; "gap" means that data before this segment is missing.`

func traceCommand(e *env) *cobra.Command {
	req := control.Trace{Recorded: true}
	var cfg text.LadderConfig
	c := &cobra.Command{
		Use:               "trace CONN",
		Short:             "draw a connection's segments as a ladder",
		Long:              aboutTrace,
		Args:              cobra.ArbitraryArgs,
		ValidArgsFunction: at(e.tracedWords, e.filterWords),
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) == 0 {
				return wrong(c, "CONN is missing")
			}
			if n, err := strconv.ParseUint(args[0], 10, 31); err == nil && len(args) == 1 {
				req.SID = int(n)
			} else {
				req.Filter = strings.Join(args, " ")
			}
			if e.json(c) {
				return traceJSON(e, c, &req)
			}
			cfg.Color, cfg.Plain = e.cfg.Color, e.cfg.Plain
			cfg.Width = cmp.Or(cfg.Width, e.width())
			return drawTrace(e, c, &req, cfg)
		},
	}
	f := c.Flags()
	f.Uint64VarP(&req.Count, "count", "c", 0, "stop after `N` segments")
	f.BoolVar(&cfg.Each, "each", false, "print a line for each segment")
	f.IntVar(&cfg.Width, "width", 0, "width in `COLUMNS`; 0: the terminal's width, or 80")
	Limit(c, 0, Unlimited, "width")
	return e.jsonFlag(c)
}

func (e *env) tracedWords(ctx context.Context, prefix string) []string {
	numbers := e.socketNumbers(ctx, func(k control.Socket) bool {
		return k.State != "UDP"
	})
	return append(numbers, e.filterWords(ctx, prefix)...)
}

func traceJSON(e *env, c *cobra.Command, req *control.Trace) error {
	e.endless()
	req.Segment = func(g control.TracedSegment) { _ = e.line("segment", g) } // always encodes
	done, err := ask(e, c, *req)
	if err != nil {
		return err
	}
	return e.line("result", done)
}

// trainWait is how long the ladder keeps a segment, so that it can draw several segments together.
const trainWait = 20 * time.Millisecond

func drawTrace(e *env, c *cobra.Command, req *control.Trace, cfg text.LadderConfig) error {
	e.endless()
	var mu sync.Mutex // guards the ladder
	ladder := text.NewLadder(cfg, e.screen.data)
	flush := time.AfterFunc(trainWait, func() {
		mu.Lock()
		defer mu.Unlock()
		ladder.Flush()
	})
	defer flush.Stop()
	what := "connection " + strconv.Itoa(req.SID)
	if req.Filter != "" {
		what = "the first connection of " + req.Filter
	}
	req.Begun = func() { e.screen.talk("following " + what + " until it ends, or Ctrl-C") }
	req.Segment = func(g control.TracedSegment) {
		mu.Lock()
		defer mu.Unlock()
		ladder.Add(&g)
		if ladder.Waiting() {
			flush.Reset(trainWait)
		}
	}
	done, err := control.Ask(c.Context(), e.op, *req)
	mu.Lock()
	defer mu.Unlock()
	ladder.Flush()
	if err != nil {
		return failed(c, err)
	}
	text := counted(done.Segments, "segment")
	if done.Missed > 0 {
		text += ", " + strconv.FormatUint(done.Missed, 10) + " missed: this reader was too slow"
	}
	e.screen.talk(text)
	return nil
}
