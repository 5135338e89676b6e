package repl

import (
	"fmt"

	"github.com/tidepool-net/tidepool/internal/control"
)

// tell shows an event. Received data goes where answers go, announcements go beside them.
func (s *Shell) tell(e control.Event) {
	if s.cfg.JSON {
		// An event that cannot be written as JSON does not exist: they are plain values.
		_ = s.document(struct {
			Event string        `json:"event"`
			Data  control.Event `json:"data"`
		}{e.Event(), e})
		return
	}
	talk := func(text string) { s.screen.talk(fold(s.cfg.Width, text)) }
	switch e := e.(type) {
	case control.TestReceived:
		s.screen.data(fmt.Sprintf("Received test packet: Src: %s, Dst: %s, TTL: %d, Data: %s",
			e.Src, e.Dst, e.TTL, printable(e.Text)))
	case control.Datagram:
		s.screen.data(fmt.Sprintf("Received %d bytes on socket %d from %s: %s",
			len(e.Data), e.SID, e.From, printable(string(e.Data))))
	case control.Undelivered:
		talk(fmt.Sprintf("Socket %d (%s): %s", e.SID, e.To, printable(e.Problem)))
	case control.Segment:
		arrow := '<'
		if e.Sent {
			arrow = '>'
		}
		s.screen.data(fmt.Sprintf("%c %d  %s", arrow, e.SID, printable(e.Text)))
	case control.RIPNews:
		at := ""
		if e.Iface != "" {
			at = e.Iface + " "
		}
		s.screen.data("rip: " + at + e.Text)
	case control.Accepted:
		talk(fmt.Sprintf("New connection on socket %d => created new socket %d (from %s)",
			e.Listener, e.Socket.SID, e.Socket.Remote))
	case control.SocketClosed:
		what := "closed by the peer"
		if e.Problem != "" {
			what = printable(e.Problem)
		}
		talk(fmt.Sprintf("Socket %d (%s): %s", e.Socket.SID, e.Socket.Remote, what))
	case control.NeighborChanged:
		talk(printable(neighborNews(&e)))
	case control.Message:
		talk(printable(e.Text))
	case control.TransferEnded:
		// Whoever started it has its answer: see carry.
	}
}
