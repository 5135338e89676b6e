package tcp

import "github.com/tidepool-net/tidepool/internal/tcp/congestion"

// goBackN is the textbook's sliding window: the receiver is heard for its
// cumulative acknowledgment alone, and whenever something is missing everything
// behind it is sent again. It is here to be compared with: a large window that
// loses one segment pays for all of them.
//
// What is missing shows by the time-out, or by the third duplicate
// acknowledgment as in the sender of fixed window that the course's congestion
// laboratory has, though once a window only: what was sent again draws
// duplicates too, and going back for those never ends.
var goBackN = strategy{name: "gbn", detector: gbn{}}

type gbn struct{ simple }

func (gbn) detect(v *recovery, r *round) {
	if r.advance > 0 {
		v.ep.dupAcks = 0
	}
	if v.ep.dupAcks += r.dups; v.ep.dupAcks < dupThresh || r.dups == 0 ||
		v.ep.kind != steady || v.ep.mayEcho(v.snd.Una) {
		return
	}
	v.lasting.counts.FastRecoveries++
	for l := &v.sent.lists[inFlight]; l.n > 0; {
		v.lose(r, l.head, v.sent.at(l.head))
	}
	v.beginUndo(true)
	v.ep = episode{kind: restarting, point: v.snd.Nxt, timedOut: v.snd.Una, force: true}
	v.cc.OnLoss(v.lossEvent(r.now, congestion.Detected, r.flight))
	v.notify(r.now)
}
