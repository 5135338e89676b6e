package examine

import (
	"slices"
	"sync"
)

// preludes are the steps that lead to the states of RFC 9293 §3.3.2, to ACTIVE (established by the
// subject) and to RIP.
var preludes = map[string]string{
	"CLOSED": "wait 1 rtt",
	"LISTEN": "listen\nwait 1 rtt",
	"SYN-SENT": `connect
expect S`,
	"SYN-RECEIVED": `listen
send S
expect S. ack 1`,
	"ESTABLISHED": `listen
send S
expect S. ack 1
send .
wait 1 rtt`,
	"ACTIVE": `connect
expect S
send S.
expect . ack 1
wait 1 rtt`,
	"CLOSE-WAIT": "ESTABLISHED\nsend F.\nexpect . ack next",
	"LAST-ACK":   "CLOSE-WAIT\nshutdown\nexpect F. ack next",
	"FIN-WAIT-1": "ESTABLISHED\nshutdown\nexpect F. ack next",
	"FIN-WAIT-2": "FIN-WAIT-1\nsend .\nwait 1 rtt",
	"CLOSING":    "FIN-WAIT-1\nsend F. ack got-1\nexpect . ack next",
	"TIME-WAIT":  "FIN-WAIT-2\nsend F.\nexpect . ack next",
	"RIP": `expect rip request within 2 period
send rip response route 10.90.0.0/16 cost 1
wait 1 rtt`,
}

func stateNames() []string { return slices.Sorted(mapKeys(preludes)) }

// parsed returns the steps of the preludes by their states.
var parsed = sync.OnceValue(func() map[string][]step {
	all := map[string][]step{}
	for name := range preludes {
		all[name] = preludeOf(name)
	}
	return all
})

// preludeOf parses the prelude of a state. The first line of a prelude may name another state.
func preludeOf(name string) []step {
	var steps []step
	text := preludes[name]
	for first := range preludes {
		if rest, ok := cutLine(text, first); ok {
			steps, text = preludeOf(first), rest
		}
	}
	p := &parser{file: name, seen: map[string]bool{}}
	p.readSteps(text)
	if len(p.errs) > 0 {
		panic("BUG: examine: " + p.errs.Error())
	}
	return append(slices.Clone(steps), p.check.steps...)
}

func cutLine(text, line string) (string, bool) {
	if len(text) > len(line) && text[:len(line)+1] == line+"\n" {
		return text[len(line)+1:], true
	}
	return text, false
}

// prelude returns the steps that lead to the check's given state.
func (c *Check) prelude() []step { return parsed()[c.given] }

// then returns the index of the first step that tests the check's requirement.
func (c *Check) then() int {
	return max(0, slices.IndexFunc(c.steps, func(s step) bool { return s.verb == "then" }))
}
