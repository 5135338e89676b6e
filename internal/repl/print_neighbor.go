package repl

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/tidepool-net/tidepool/internal/control"
)

// printNeighbors is the family's table. With stats what is known of each neighbour is behind
// it, without only of those who are not well.
func printNeighbors(list []control.Neighbor, stats bool) string {
	columns := []column{{"Iface", 5, 0}, {"VIP", 13, 2}, {"UDPAddr", 17, 2}}
	if stats {
		columns = append(columns, column{"State", 7, 2}, column{"Since", 7, 2},
			column{"Heard", 7, 2}, column{"In", 6, 2}, column{"Out", 6, 2})
	}
	var notes strings.Builder
	rows := make([][]string, 0, len(list))
	for _, n := range list {
		row := []string{n.Iface, n.Addr.String(), n.UDP, "-", "-", "-", "-", "-"}
		if n.State != "" {
			row = append(row[:3], string(n.State), ago(n.Since), "never",
				strconv.FormatUint(n.In, 10), strconv.FormatUint(n.Out, 10))
			if n.Heard >= 0 {
				row[5] = ago(n.Heard)
			}
		}
		rows = append(rows, row[:len(columns)])
		notes.WriteString(neighborNote(&n))
	}
	return table(columns, rows) + notes.String()
}

// neighborNote is what the table has no column for: what is wrong with a neighbour.
func neighborNote(n *control.Neighbor) string {
	why := ""
	if n.Problem != "" {
		why = ": " + n.Problem + inFile(n)
	}
	switch n.State {
	case "", control.NeighborUnknown, control.NeighborUp:
		if why == "" {
			return ""
		}
		return wrapped("    "+n.Addr.String()+why, "    ")
	case control.NeighborRefused:
		why = ": nobody has its UDP port" + inFile(n)
	case control.NeighborSilent, control.NeighborUnreachable, control.NeighborUnresolved:
	}
	return wrapped(fmt.Sprintf("    %v is %s for %s%s", n.Addr, n.State, ago(n.Since), why), "    ")
}

// inFile is where the file speaks of a neighbour, in brackets.
func inFile(n *control.Neighbor) string {
	if n.Line == "" {
		return ""
	}
	return " (" + n.Line + ")"
}

// ago is a time in two figures or so: 0.3s, 12s, 4m, 3h, 2d.
func ago(d time.Duration) string {
	const day = 24 * time.Hour
	switch {
	case d < 10*time.Second:
		return strconv.FormatFloat(max(0, d).Seconds(), 'f', 1, 64) + "s"
	case d < 2*time.Minute:
		return strconv.Itoa(int(d/time.Second)) + "s"
	case d < 2*time.Hour:
		return strconv.Itoa(int(d/time.Minute)) + "m"
	case d < 2*day:
		return strconv.Itoa(int(d/time.Hour)) + "h"
	}
	return strconv.Itoa(int(d/day)) + "d"
}

// neighborNews is what has happened to a neighbour.
func neighborNews(e *control.NeighborChanged) string {
	n := &e.Neighbor
	who := fmt.Sprintf("Neighbor %v (%s via %s)", n.Addr, n.UDP, n.Iface)
	if e.From != "" {
		return fmt.Sprintf("%s has moved from %s", who, e.From)
	}
	why := inFile(n)
	if n.Problem != "" {
		why = ": " + n.Problem + why
	}
	switch n.State {
	case control.NeighborUp:
		if e.First {
			return who + " is here"
		}
		return fmt.Sprintf("%s is back after %s of being %s", who, ago(e.For), e.Was)
	case control.NeighborRefused:
		return who + " is not there: nobody has that UDP port" + inFile(n) + ". Does its node run?"
	case control.NeighborSilent:
		return who + " is silent: what was sent to it is not answered" + inFile(n)
	case control.NeighborUnreachable:
		return who + " cannot be reached" + why
	case control.NeighborUnresolved:
		return who + " has no address yet" + why
	case control.NeighborUnknown:
	}
	return who + " is " + string(n.State) + why
}
