package repl

import (
	"fmt"
	"strconv"

	"github.com/tidepool-net/tidepool/internal/control"
)

// printEvent prints an event. Received data goes to the output, messages to standard error.
func (s *Shell) printEvent(e control.Event) {
	if s.env.cfg.JSON {
		// Only the command that requests progress prints it.
		if _, often := e.(control.Transferring); !often {
			s.tellJSON(e)
		}
		return
	}
	text, isData := Describe(e)
	switch {
	case text == "":
	case isData:
		s.env.screen.data(text)
	default:
		s.Say(text)
	}
}

func (s *Shell) tellJSON(e control.Event) {
	// Events are plain values, so encoding cannot fail.
	_ = s.env.line(e.Event(), e)
}

// Describe formats an event as one line of text, or returns "" if the event needs no line. isData
// marks data from the network for the user.
func Describe(e control.Event) (text string, isData bool) {
	switch e := e.(type) {
	case control.TestReceived:
		return fmt.Sprintf("Received test packet: Src: %s, Dst: %s, TTL: %d, Data: %s",
			e.Src, e.Dst, e.TTL, printable(e.Text)), true
	case control.Datagram:
		return fmt.Sprintf("Received %d bytes on socket %d from %s: %s",
			len(e.Data), e.SID, e.From, printable(string(e.Data))), true
	case control.Undelivered:
		return fmt.Sprintf("Socket %d (%s): %s", e.SID, e.To, printable(e.Problem)), false
	case control.Segment:
		arrow := '<'
		if e.Sent {
			arrow = '>'
		}
		sid := "-" // the connection has not been accepted yet
		if e.SID >= 0 {
			sid = strconv.Itoa(e.SID)
		}
		return fmt.Sprintf("%c %s  %s", arrow, sid, printable(e.Text)), true
	case control.RIPNews:
		at := ""
		if e.Iface != "" {
			at = e.Iface + " "
		}
		return "rip: " + at + e.Text, true
	case control.Accepted:
		return fmt.Sprintf("New connection on socket %d => created new socket %d (from %s)",
			e.Listener, e.Socket.SID, e.Socket.Remote), false
	case control.SocketClosed:
		what := "closed by the peer"
		if e.Problem != "" {
			what = printable(e.Problem)
		}
		return fmt.Sprintf("Socket %d (%s): %s", e.Socket.SID, e.Socket.Remote, what), false
	case control.NeighborChanged:
		return printable(neighborNews(&e)), false
	case control.LinkChanged:
		state := "down"
		if e.Interface.Up {
			state = "up"
		}
		return "Interface " + printable(e.Interface.Name) + " is " + state, false
	case control.Message:
		return printable(e.Text), false
	case control.PerfEnded:
		return describePerf(&e), false
	case control.Transferring, control.TransferEnded:
		// The session that started the transfer prints the result: see carry.
	}
	return "", false
}
