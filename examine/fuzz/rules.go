package fuzz

import (
	_ "embed"
	"fmt"
	"slices"
	"strings"

	"github.com/tidepool-net/tidepool/internal/tcp"
)

//go:embed rfc9293.model
var modelText string

// condition is a set of facts about an event and about the connection when it happens.
type condition uint32

const (
	hasSyn condition = 1 << iota
	hasAck
	hasFin
	hasRst
	hasData
	inWindow
	isExact
	isFirst
	acksSyn
	acksFin
	isFuture
	isAncient
	hasNews
	isPassive
	isOrphan
	isUnread
)

var conditionNames = []string{
	"syn", "ack", "fin", "rst", "data", "window", "exact", "first", "acks-syn", "acks-fin",
	"future", "ancient", "news", "passive", "orphan", "unread",
}

// effect is one effect of a rule.
type effect uint8

const (
	doStop effect = iota
	doAccept
	doUna
	doText
	doEnd
	doRead
	doClose
	doData
	doFin
)

var effectNames = []string{
	"stop", "accept", "una", "text", "end", "read", "close", "data", "fin",
}

// answers maps the effects that are answers.
var answers = map[string]Answer{
	"ack": Ack, "rst-ack": RstAck, "rst-seq": RstSeq, "rst": RstAck | RstConn, "syn": Syn,
	"syn-ack": SynAck, "data": Data, "fin": Fin,
}

// rule is a line of the model.
type rule struct {
	line     int
	kind     Kind
	states   uint16 // one bit for each state
	want     condition
	not      condition
	effects  []effect
	need     []Answer // one answer of each set is required
	optional Answer   // these answers are allowed
	limited  bool     // nothing is required if the stack has answered such a segment recently
	to       tcp.State
	moves    bool
}

// synchronizedStates are the states that the model calls SYNCHRONIZED.
const synchronizedStates = 1<<tcp.StateEstablished | 1<<tcp.StateFinWait1 |
	1<<tcp.StateFinWait2 | 1<<tcp.StateCloseWait | 1<<tcp.StateClosing | 1<<tcp.StateLastAck |
	1<<tcp.StateTimeWait

// rules are the rules of the model.
var rules = mustRules(modelText)

func mustRules(text string) []rule {
	list, err := parseRules(text)
	if err != nil {
		panic("BUG: fuzz: " + err.Error())
	}
	return list
}

// parseRules reads a model.
func parseRules(text string) ([]rule, error) {
	var list []rule
	for i, line := range strings.Split(text, "\n") {
		if line = strings.TrimSpace(line); line == "" || line[0] == '#' {
			continue
		}
		r := rule{line: i + 1, kind: Send}
		if err := r.parse(line); err != nil {
			return nil, fmt.Errorf("line %d: %w", r.line, err)
		}
		list = append(list, r)
	}
	return list, nil
}

func (r *rule) parse(line string) error {
	head, tail, ok := strings.Cut(line, ":")
	conditions, effects, arrow := strings.Cut(tail, "->")
	if !ok || !arrow {
		return fmt.Errorf("%q is not a rule: must be STATES: conditions -> effects", line)
	}
	for w := range strings.FieldsSeq(head) {
		if at := slices.Index(kindNames[:], w); at >= 0 {
			r.kind = Kind(at)
		} else if w == "SYNCHRONIZED" {
			r.states |= synchronizedStates
		} else if s, ok := stateOf(w); ok {
			r.states |= 1 << s
		} else {
			return fmt.Errorf("unknown state %q", w)
		}
	}
	for w := range strings.FieldsSeq(conditions) {
		name, not := strings.CutPrefix(w, "!")
		at := slices.Index(conditionNames, name)
		switch {
		case at < 0:
			return fmt.Errorf("unknown condition %q", w)
		case not:
			r.not |= 1 << at
		default:
			r.want |= 1 << at
		}
	}
	for w := range strings.FieldsSeq(effects) {
		if err := r.parseEffect(w); err != nil {
			return err
		}
	}
	return nil
}

func (r *rule) parseEffect(w string) error {
	name := strings.TrimRight(w, "?~")
	a, answer := answers[name]
	at := slices.Index(effectNames, name)
	s, state := stateOf(name)
	if state {
		r.to, r.moves = s, true
	}
	if at >= 0 {
		r.effects = append(r.effects, effect(at))
	}
	switch {
	case !answer && at < 0 && !state:
		return fmt.Errorf("unknown effect %q", w)
	case answer && strings.HasSuffix(w, "?"):
		r.optional |= a
	case answer:
		r.need = append(r.need, a)
		r.limited = r.limited || strings.HasSuffix(w, "~")
	}
	return nil
}

// stateOf returns the state with a name of RFC 9293 §3.3.2.
func stateOf(name string) (tcp.State, bool) {
	for s := tcp.StateClosed; s <= tcp.StateTimeWait; s++ {
		if s.String() == name {
			return s, true
		}
	}
	return 0, false
}
