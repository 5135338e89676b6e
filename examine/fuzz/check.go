package fuzz

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tidepool-net/tidepool/internal/files"
)

// WriteChecks writes a check file for each row into a folder.
func (t *Table) WriteChecks(folder string) error {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	for i := range t.Rows {
		text, err := t.Rows[i].Check()
		if err != nil {
			return err
		}
		name := fmt.Sprintf("fuzz-%02d.check", i+1)
		if err := files.Overwrite(filepath.Join(folder, name), []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// settleLine gives an event in a check the time that it takes in a sequence.
const settleLine = "wait 5 rtt"

// Check returns a row as a check file. The check replays the sequence and expects what the model
// requires.
func (r *Row) Check() (string, error) {
	steps, err := trace(Engine{}, r.Events)
	if err != nil {
		return "", err
	}
	if len(steps) != len(r.Events) {
		return "", fmt.Errorf("the engine itself differs from the model after %s",
			strings.Join(lines(r.Events), ", "))
	}
	var b strings.Builder
	last := &steps[len(steps)-1]
	fmt.Fprintf(&b, "rfc     RFC 9293 §3.10\nlevel   MUST\narea    tcp states\n"+
		"story   In %s: %s.\nrule    The answer is: %s.\nbug     The stack does otherwise: %s.\n\n",
		last.Before, last.Event, last.Want, r.Wrong)
	for i := range steps {
		if i == len(steps)-1 {
			b.WriteString("then\n")
		}
		s := &steps[i]
		b.WriteString(s.Event.String() + "\n")
		expected := s.expected()
		b.WriteString(expected)
		if i == len(steps)-1 && expected == "" {
			for _, p := range forbidden(r.Wrong) {
				fmt.Fprintf(&b, "no %s for 5 rtt\n", p)
			}
			if r.Wrong == tooMuch {
				fmt.Fprintf(&b, "no any ack >%d for 5 rtt\n", s.Outcome.Acked)
			}
		}
		b.WriteString(settleLine + "\n")
	}
	return b.String(), nil
}

// expected returns the lines for the answers that are required, with the engine's numbers.
func (s *Step) expected() string {
	var b strings.Builder
	for i, a := range s.need {
		if slices.Contains(s.need[:i], a) {
			continue // two rules require it
		}
		switch {
		case a&resets != 0 && s.Outcome.Answer&RstAck != 0:
			b.WriteString("expect R\n")
		case a&resets != 0:
			b.WriteString("expect R.\n")
		case a == Syn:
			b.WriteString("expect S\n")
		case a == SynAck:
			fmt.Fprintf(&b, "expect S. ack %d\n", s.Outcome.Acked)
		case a == Data:
			fmt.Fprintf(&b, "expect . len %d\n", s.Event.Len)
		case a == Fin:
			fmt.Fprintf(&b, "expect F. ack %d\n", s.Outcome.Acked)
		case a == Ack && s.Outcome.Answer&Ack != 0:
			fmt.Fprintf(&b, "expect . ack %d\n", s.Outcome.Acked)
		}
	}
	return b.String()
}

// forbidden returns patterns for packets that a stack must not send.
func forbidden(wrong string) []string {
	var list []string
	for _, f := range []struct{ name, pattern string }{
		{"ACK", "."}, {"SYN-ACK", "S."}, {"FIN", "F."}, {"RST", "R"}, {"RST", "R."},
	} {
		kinds, ok := strings.CutPrefix(wrong, "it must not send ")
		for kind := range strings.SplitSeq(kinds, ", ") {
			if ok && kind == f.name {
				list = append(list, f.pattern)
			}
		}
	}
	return list
}
