package convergence

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/tidepool-net/tidepool/internal/rip"
)

// These are the formats of the tables' rows.
const (
	phaseRow = "%-19s %9s %9s %9s %9s %9s %9s %9s %6s %8s %13s\n"
	countRow = "%9s  %6s  %8s  %3s\n"
)

// Print writes the outcome as tables.
func (o *Outcome) Print(out io.Writer) error {
	if o.Count != nil {
		return o.Count.print(out)
	}
	return o.Network.print(out)
}

func (r *Result) print(out io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s, dialect %s, seed %d\n", r.Name, r.Dialect, r.Seed)
	fmt.Fprintf(&b, "%d routers, %d links, diameter %d hops, %d routes\n\n",
		r.Routers, r.Links, r.Diameter, r.Routes)
	fmt.Fprintf(&b, phaseRow, "event", "50 %", "90 %", "99 %", "all right",
		"messages", "entries", "changes", "loops", "longest", "highest cost")
	for i := range r.Phases {
		p := &r.Phases[i]
		fmt.Fprintf(&b, phaseRow, p.Name, p.reached(marks[0]), p.reached(marks[1]),
			p.reached(marks[2]), seconds(p.Converged),
			number(p.Messages.Requests+p.Messages.Responses), number(p.Messages.Entries),
			number(p.Changes), number(p.Loops), seconds(p.Longest), number(p.Highest))
	}
	fmt.Fprintf(&b, "\n%d packets in %s of virtual time, event hash %s\n",
		r.Packets, seconds(r.Elapsed), r.Hash)
	_, err := io.WriteString(out, b.String())
	return err
}

func (p *Phase) reached(share float64) string {
	for _, s := range p.Steps {
		if s.Right == share { //nolint:gosec // the same constant
			return seconds(s.After)
		}
	}
	return "-"
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.3f s", d.Seconds()) }

func (c *Count) print(out io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "rip-count, dialect %s, seed %d\n", c.Dialect, c.Seed)
	b.WriteString("Routers r0, r1 and r2 form a ring. r0 loses the network behind it, and its\n" +
		"message to r2 is lost: r2 still offers a route, which leads through r0.\n\n")
	fmt.Fprintf(&b, countRow, "after", "router", "cost", "via")
	for _, s := range c.Steps {
		cost, via := number(s.Cost), "-"
		if s.Via >= 0 {
			via = fmt.Sprintf("r%d", s.Via)
		}
		if s.Cost >= rip.Infinity {
			cost = "infinity"
		}
		fmt.Fprintf(&b, countRow, seconds(s.After), fmt.Sprintf("r%d", s.Router), cost, via)
	}
	fmt.Fprintf(&b, "\nended after %s and %d messages, event hash %s\n",
		seconds(c.Over), c.Messages.Requests+c.Messages.Responses, c.Hash)
	_, err := io.WriteString(out, b.String())
	return err
}

func number[N int | uint64](n N) string { return fmt.Sprint(n) }
