package chaos_test

import (
	"errors"
	"fmt"

	"github.com/tidepool-net/tidepool/internal/sim"
	"github.com/tidepool-net/tidepool/internal/tcp"
)

// checkAlways checks the invariants that hold at any time: no wrong byte, no acknowledgment of a
// byte that the other TCP does not have, no buffer beyond its limit.
func (r *seedRun) checkAlways() {
	r.checkDirection(&r.left, &r.right)
	r.checkDirection(&r.right, &r.left)
}

func (r *seedRun) checkDirection(from, to *end) {
	if from.conn == nil {
		return
	}
	tx, rx := from.conn.TCP().Tx(), from.conn.TCP().Rx()
	if acked := tx.Head(); acked > 0 {
		if got := to.inOrder(acked); acked > got {
			r.fail("%s got an acknowledgment of %d bytes, %s has %d in order",
				from.name, acked, to.name, got)
		}
	}
	if tx.Len() > tx.Limit() || rx.Len() > rx.Limit() {
		r.fail("%s: buffer overflow: send %d holds %d, receive %d holds %d",
			from.name, tx.Limit(), tx.Len(), rx.Limit(), rx.Len())
	}
	if from.app.Wrong {
		r.fail("%s: byte %d is wrong", from.name, from.app.Received)
	}
	if from.app.Received > to.app.Sent {
		r.fail("%s received %d bytes, %s sent %d",
			from.name, from.app.Received, to.name, to.app.Sent)
	}
	if from.app.EOF && from.app.Received < to.app.Sent && !from.deaf() {
		r.fail("%s saw the end after %d bytes, %s sent %d",
			from.name, from.app.Received, to.name, to.app.Sent)
	}
}

// inOrder returns the number of bytes that an end's TCP has received in order. The end of the
// receive buffer is cheap to read; inOrder returns it if it is at least enough.
func (e *end) inOrder(enough uint64) uint64 {
	if e.conn == nil {
		return 0
	}
	if n := e.conn.TCP().Rx().Tail(); n >= enough {
		return n
	}
	// The result includes data that arrives after the application has stopped reading.
	return e.conn.TCP().Info().RcvNxt
}

func (e *end) deaf() bool { return e.app.Left && e.app.Leave == sim.LeaveCloseRead }

// checkEnds checks the invariants at the end of the run. If an end closed without an error,
// everything that it sent was acknowledged. If both ends did, everything arrived.
func (r *seedRun) checkEnds() {
	r.checkEnd(&r.left, &r.right)
	r.checkEnd(&r.right, &r.left)
}

func (r *seedRun) checkEnd(from, to *end) {
	if from.conn == nil || !from.app.Over || from.app.Err != nil {
		return
	}
	if got := to.inOrder(from.app.Sent); got < from.app.Sent {
		r.fail("%s closed in order and sent %d bytes, %s has %d",
			from.name, from.app.Sent, to.name, got)
	}
	if acked := from.conn.TCP().Info().BytesAcked; acked < from.app.Sent {
		r.fail("%s closed in order with %d bytes of %d acknowledged",
			from.name, acked, from.app.Sent)
	}
	if to.app.Over && to.app.Err == nil && !to.app.Left && to.app.Received != from.app.Sent {
		r.fail("both closed in order; %s sent %d bytes, %s read %d",
			from.name, from.app.Sent, to.name, to.app.Received)
	}
}

// stuck distinguishes a connection that cannot end from a half-open one (RFC 9293 §3.5.1). The peer
// of a half-open connection is gone, and the peer's reset was lost. The connection has nothing to
// send, so it never detects that. Keepalive would detect it.
func (r *seedRun) stuck() {
	for _, pair := range [][2]*end{{&r.left, &r.right}, {&r.right, &r.left}} {
		e, peer := pair[0], pair[1]
		if e.conn == nil || e.app.Over {
			continue
		}
		i := e.conn.TCP().Info()
		gone := peer.conn == nil || peer.app.Over &&
			(peer.app.Err != nil || peer.conn.TCP().State() == tcp.StateClosed)
		if !gone || i.NotSentBytes > 0 || i.Pipe > 0 {
			r.fail("stuck after %v:\n%s%s", r.line.Elapsed(), e.state(), peer.state())
			return
		}
		if peer.app.Over && peer.app.Err == nil {
			r.fail("%s waits for %s, which closed in order:\n%+v", e.name, peer.name, i)
			return
		}
		e.halfOpen = true
		e.conn.Abort()
		e.conn.Host().Settle()
	}
}

func (e *end) state() string {
	s := fmt.Sprintf("%s: %+v\n", e.name, *e.app)
	if e.conn != nil {
		s += fmt.Sprintf("  %+v\n", e.conn.TCP().Info())
	}
	return s
}

// checkEmpty checks that the hosts have no state after everything has ended.
func (r *seedRun) checkEmpty() {
	for _, h := range r.line.Hosts() {
		host := h.Stack().TCP()
		for c := range host.Conns() {
			r.fail("%s still has a connection in %v:\n%+v", h.Name(), c.State(), c.Info())
		}
		if n := host.TimeWaits(); n > 0 {
			r.fail("%s still has %d connections in TIME-WAIT", h.Name(), n)
		}
	}
	for _, e := range []*end{&r.left, &r.right} {
		if errors.Is(e.app.Err, tcp.ErrAborted) && !e.halfOpen &&
			e.app.Leave != sim.LeaveAbort && e.app.Leave != sim.LeaveClose {
			r.fail("%s was aborted, but neither application aborted it", e.name)
		}
	}
}
