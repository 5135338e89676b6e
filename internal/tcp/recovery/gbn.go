package recovery

import "github.com/tidepool-net/tidepool/internal/tcp/congestion"

// goBackN is the textbook's sliding window, for comparison. It uses only the cumulative
// acknowledgment, and retransmits all data from a hole on. It detects a hole by a timeout, or once
// per window by three duplicate acknowledgments. Its own retransmissions cause more duplicates,
// which must not count.
var goBackN = strategy{name: "gbn", detector: gbn{}}

type gbn struct{ simple }

func (gbn) detect(v *Recovery, r *Ack) {
	if r.advance > 0 {
		v.Episode.dupAcks = 0
	}
	if v.Episode.dupAcks += r.Dups; v.Episode.dupAcks < DupThresh || r.Dups == 0 ||
		v.Episode.kind != steady || v.Episode.mayEcho(v.snd.Una) {
		return
	}
	v.Kept.Counts.FastRecoveries++
	for l := &v.Record.lists[inFlight]; l.n > 0; {
		r.lose(l.head, v.Record.at(l.head))
	}
	v.undo.begin(v, true)
	v.Episode = episode{kind: restarting, point: v.snd.Nxt, timedOut: v.snd.Una, force: true}
	v.CC.OnLoss(v.lossEvent(r.now, congestion.Detected, r.flight))
	v.notify(r.now)
}
