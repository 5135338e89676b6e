package repl

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tidepool-net/tidepool/internal/control"
)

// impairHelp lists the keywords. The node parses them. A test compares this list with the parser's.
const impairHelp = `Impair the link of IF for packets that are sent (out), received (in) or both.
The arguments replace IF's previous settings. ` + "`off`" + ` removes all settings.
Without arguments the command shows IF's settings and counters, and without IF
those of all interfaces. The arguments are those of tc-netem(8) and of tc's
queues, with additions, in any order; you can paste a whole tc command.

  delay TIME [JITTER [CORR%]]      delay packets; jitter keeps their order
    overtake                       jitter may reorder packets
    distribution NAME              jitter is uniform, normal, pareto or
                                   paretonormal, or as in a FILE.dist of tc
  loss P% [CORR%]                  independent losses
  loss gemodel P% [R% [1-H% [1-K%]]]   bursts of losses (Gilbert-Elliott)
  loss state P13% [P31% [P32% [P23% [P14%]]]]   a Markov chain of four states
  loss every N [first N] | drop 3,7,20-25    lose packets by number, from 1
  loss bytes 0,1460,70000          lose packets that contain these bytes
  loss onoff 2s 500ms [poisson]    the link is alternately up and down
  loss during 10s-12s,1m-2m [P%]   at these times, counted from now
  duplicate P% [CORR%]             send packets twice
  reorder P% [CORR%] [gap N] [late TIME]   skip the delay, or add TIME to it
  corrupt P% [CORR%] [bits N] [where headers|payload]   flip bits of packets
  truncate P%                      cut off the end of packets
  police RATE BURST [mark]         drop, or mark, packets above the rate
  rate RATE [OVERHEAD [CELL [CELLOVERHEAD]]]   RATE is like 10mbit
  rate 1mbit,2mbit@10s,0bit@20s [repeat 30s]   change the rate in steps
  slot MIN [MAX] [packets N] [bytes N]   send in bursts, as Wi-Fi and LTE do; or
    distribution NAME DELAY JITTER
  trace FILE [once]                send at the times of a mahimahi trace
  limit 100 | 64kb | 200ms | 100,64kb   length of the queue
  droptail | drophead              a full queue drops new or old packets; or:
  codel [target 5ms] [interval 100ms]
  fq_codel [flows 1024] [quantum 1514] [memory_limit 32mb] [target, interval]
  pie [target 15ms] [tupdate 15ms] [alpha 2] [beta 20] [allowance 150ms]
    [dq_rate_estimator]
  red [min 10kb] [max 30kb] [probability 10%] [weight 0.2%] [avpkt 1000]
    [abrupt] [markall]
  ecn | noecn                      mark packets instead of dropping them, or not
  seed N                           repeat the same random draws

Example: impair if0 out delay 20ms 5ms loss 2% rate 10mbit codel seed 7
`

func impairCommand(e *env) *cobra.Command {
	return e.jsonFlag(&cobra.Command{
		Use:   "impair [IF] [in|out|both] [ARG...]",
		Short: "add loss, delay or a queue to a link",
		Long:  impairHelp,
		Args:  cobra.ArbitraryArgs,
		ValidArgsFunction: at(e.interfaceNames, words("in", "out", "both", "off"),
			words(impairWords()...)),
		RunE: func(c *cobra.Command, args []string) error { return runImpair(e, c, args) },
	})
}

// impairWords returns the first word of each line of the help that describes a keyword.
func impairWords() []string {
	var list []string
	for line := range strings.Lines(impairHelp) {
		if word, indented := strings.CutPrefix(line, "  "); indented && word[0] != ' ' {
			word, _, _ = strings.Cut(word, " ")
			list = append(list, word)
		}
	}
	return slices.Compact(list)
}

func runImpair(e *env, c *cobra.Command, args []string) error {
	var req control.Impair
	if len(args) > 0 && args[0] != "off" {
		req.Iface, args = args[0], args[1:]
	}
	if len(args) > 0 {
		switch way := control.Way(args[0]); way {
		case control.WayIn, control.WayOut, control.WayBoth:
			req.Way, args = way, args[1:]
		}
	}
	if len(args) == 0 {
		list, err := ask(e, c, control.Impairments{Iface: req.Iface})
		if err != nil {
			return err
		}
		if req.Way == control.WayIn || req.Way == control.WayOut {
			list = slices.DeleteFunc(list, func(i control.Impairment) bool {
				return i.Way != req.Way
			})
		}
		return e.answer(c, list, printImpairments(list, req.Iface != ""))
	}
	req.Words = strings.Join(args, " ")
	return show(e, c, req, func(list []control.Impairment) string {
		return printImpairments(list, true)
	})
}

// nothing is how a node describes a link without impairments.
const nothing = "nothing"

// printImpairments formats two paragraphs for each direction: the settings and the counters. Unless
// all is set, it omits directions that never had an impairment.
func printImpairments(list []control.Impairment, all bool) string {
	var b strings.Builder
	for _, i := range list {
		if !all && i.Words == nothing && i.Seen == 0 {
			continue
		}
		words := i.Words
		if i.Seed != 0 && !strings.Contains(words, " seed ") {
			words += fmt.Sprintf(" (seed %d)", i.Seed)
		}
		title := fmt.Sprintf("%s %s:", i.Iface, i.Way)
		b.WriteString(wrapped(pad(title, 8)+" "+words, "         "))
		if i.Seen > 0 {
			b.WriteString(wrapped("         "+impairmentCounts(&i), "         "))
		}
	}
	if b.Len() == 0 {
		return "no link is impaired; `help impair` lists the options\n"
	}
	return b.String()
}

func impairmentCounts(i *control.Impairment) string {
	parts := []string{fmt.Sprintf("%d packets seen, %d passed", i.Seen, i.Passed)}
	for _, c := range []struct {
		n    uint64
		what string
	}{
		{i.Lost, "lost"},
		{i.QueueDropped, "dropped by the queue"},
		{i.Overflowed, "dropped: no memory"},
		{i.Marked, "marked"},
		{i.Duplicated, "duplicated"},
		{i.Corrupted, "corrupted"},
		{i.Truncated, "truncated"},
		{i.Reordered, "reordered"},
		{i.Delayed, "delayed"},
		{uint64(i.Inside), "in transit"},
		{uint64(i.Waiting), "of these in the queue"},
	} {
		if c.n > 0 {
			parts = append(parts, strconv.FormatUint(c.n, 10)+" "+c.what)
		}
	}
	return strings.Join(parts, ", ")
}
