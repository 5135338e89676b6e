package repl

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/tidepool-net/tidepool/internal/control"
)

// nothing is how a node calls a link that does nothing to packets.
const nothing = "nothing"

// printImpairments is two paragraphs a way: what it does, and what it did. Ways that never
// did anything are left out unless all are asked for.
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
		return "no link is impaired; `help impair` says how\n"
	}
	return b.String()
}

// impairmentCounts is what was done to how many packets.
func impairmentCounts(i *control.Impairment) string {
	parts := []string{fmt.Sprintf("%d packets seen, %d passed", i.Seen, i.Passed)}
	for _, c := range []struct {
		n    uint64
		what string
	}{
		{i.Lost, "lost"},
		{i.QueueDropped, "dropped by the queue"},
		{i.Overflowed, "dropped for want of room"},
		{i.Marked, "marked"},
		{i.Duplicated, "duplicated"},
		{i.Corrupted, "corrupted"},
		{i.Truncated, "truncated"},
		{i.Reordered, "reordered"},
		{i.Delayed, "delayed"},
		{uint64(i.Inside), "on their way"},
		{uint64(i.Waiting), "of these in the queue"},
	} {
		if c.n > 0 {
			parts = append(parts, strconv.FormatUint(c.n, 10)+" "+c.what)
		}
	}
	return strings.Join(parts, ", ")
}
