package drill

import (
	"errors"

	"github.com/tidepool-net/tidepool/internal/tcp"
)

// ICMP errors, by the errno that a program gets.
var (
	errNetUnreachable  = errors.New("network is unreachable")
	errHostUnreachable = errors.New("no route to host")
)

// reports are the ICMP messages that concern a connection, with Linux's error for each.
var reports = map[string]error{
	"unreachable net_unreachable":      errNetUnreachable,
	"unreachable host_unreachable":     errHostUnreachable,
	"unreachable protocol_unreachable": tcp.ErrRefused,
	"unreachable port_unreachable":     tcp.ErrRefused,
	"unreachable net_unknown":          errNetUnreachable,
	"unreachable host_unknown":         errHostUnreachable,
	"unreachable net_prohibited":       errNetUnreachable,
	"unreachable host_prohibited":      errHostUnreachable,
	"unreachable packet_filtered":      errHostUnreachable,
	"time_exceeded ":                   errHostUnreachable,
	"source_quench ":                   nil, // RFC 6633 §3: ignored
}

func (r *report) run(w *world, e *event) error {
	if err := w.reach(e); err != nil {
		return err
	}
	p := w.current
	if p == nil {
		return w.fail("icmp for an unknown connection")
	}
	seq := r.seq + p.iss
	if r.kind == "unreachable" && r.code == "frag_needed" {
		if r.mtu < 0 {
			return w.fail("frag_needed needs an mtu")
		}
		w.host.TooBig(w.now, p.tuple, seq, r.mtu)
		return w.pump()
	}
	err, ok := reports[r.kind+" "+r.code]
	if !ok {
		return w.fail("unknown icmp %s %s", r.kind, r.code)
	}
	if err != nil {
		w.host.Unreachable(w.now, p.tuple, seq, err, errors.Is(err, tcp.ErrRefused))
	}
	return w.pump()
}
