// Command mutants measures what the examiner finds. It examines faulty variants of our own stack,
// with one plausible bug each. It prints which checks fail, and whether their area is that of the
// bug. A variant is our stack with its packets changed in transit, so the stack itself needs no
// extra code. The command exits with 1 if the examiner misses more than -miss variants.
package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"

	"github.com/tidepool-net/tidepool/examine"
)

func main() {
	only := flag.String("mutant", "", "examine only the mutants whose names match `REGEXP`")
	miss := flag.Int("miss", 0, "accept `N` mutants that are not found")
	flag.Parse()
	pattern, err := regexp.Compile(*only)
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(2)
	}
	missed, err := run(context.Background(), os.Stdout, pattern)
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(1)
	}
	if missed > *miss {
		os.Exit(1)
	}
}

// run examines the mutants and writes a table in Markdown. It returns how many were not found in
// their area.
func run(ctx context.Context, w io.Writer, only *regexp.Regexp) (missed int, err error) {
	checks, err := examine.Checks()
	if err != nil {
		return 0, err
	}
	var b bytes.Buffer
	b.WriteString("| mutant | area | found by | checks |\n|---|---|---|---:|\n")
	count, found := 0, 0
	for i := range mutants {
		m := &mutants[i]
		if !only.MatchString(m.name) {
			continue
		}
		count++
		failed, right := m.examine(ctx, checks)
		first := "**not found**"
		switch {
		case right != "":
			first = right
			found++
		case len(failed) > 0:
			first = failed[0] + " (another area)"
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %d |\n", m.name, m.area, first, len(failed))
	}
	fmt.Fprintf(&b, "\n%d of %d mutants are found in their area.\n", found, count)
	_, err = w.Write(b.Bytes())
	return count - found, err
}

// examine examines a mutant. It returns the names of the checks that failed, and the first one in
// the mutant's area.
func (m *mutant) examine(ctx context.Context, checks []*examine.Check) (failed []string,
	right string,
) {
	subject := &examine.Self{Change: m.change, Knobs: m.knobs}
	exam := &examine.Exam{Subject: subject, Checks: checks, Runs: 1}
	report := exam.Run(ctx)
	for i := range report.Results {
		r := &report.Results[i]
		if r.Verdict != examine.Fail && r.Verdict != examine.Flooded {
			continue
		}
		failed = append(failed, r.Check.Name)
		if right == "" && strings.HasPrefix(r.Check.Area, m.area) {
			right = r.Check.Name
		}
	}
	return failed, right
}

// change returns the mutant's change of the packets of one run.
func (m *mutant) change() func(toSubject bool, b []byte) [][]byte {
	s := &state{
		sent: map[uint32]bool{}, acks: map[uint32]bool{}, missed: map[uint32]int{}, window: 1,
	}
	return func(toSubject bool, b []byte) [][]byte {
		p := packet(bytes.Clone(b))
		edit := m.from
		if toSubject {
			edit = m.to
		}
		if edit != nil && len(p) >= 20 && p[0]>>4 == 4 && p.header() >= 20 && p.header() <= len(p) {
			p = edit(s, p)
		}
		s.note(toSubject, b)
		if p == nil {
			return nil
		}
		return [][]byte{p}
	}
}

// note records a packet in transit.
func (s *state) note(toSubject bool, b []byte) {
	p := packet(b)
	if len(p) < 20 || p.header() < 20 || p.header() > len(p) || !p.tcp() {
		return
	}
	switch {
	case toSubject:
		s.window = p.win()
	case p.has(ack) && !p.has(rst):
		s.next = p.ack()
	case p.has(syn):
		s.opened = true
	}
}

// repeats reports whether the subject has sent a segment with this sequence number before.
func (s *state) repeats(p packet) bool {
	old := s.sent[p.seq()]
	s.sent[p.seq()] = true
	return old
}
