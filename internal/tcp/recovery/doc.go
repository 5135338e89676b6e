// Package recovery implements the loss detection and congestion control of a TCP sender. It uses
// ranges of sequence numbers, times and sizes, but no segments or connections.
//
// A Recovery keeps a record of each segment between SND.UNA and SND.NXT, which it shares with the
// sender as a Space. The connection calls it when it sends data (Push), when an acknowledgment
// arrives (BeginAck, Ack.MarkDelivered, Ack.Process) and when a timer expires (Advance, OnTimeout).
// The connection also asks how many bytes it may send (Allowance, Pace), what to retransmit
// (Resend, Spare) and when the next timer expires (At).
//
// Each algorithm has its own file. The algorithms that detect losses implement the interface
// detector: RFC 8985 in rack.go and tlp.go, RFC 6675 in nextseg.go, RFC 6582 in newreno.go and
// go-back-N in gbn.go. RFC 5682 is in frto.go, RFC 3522, RFC 3708 and RFC 4015 are in undo.go, RFC
// 9937 is in episode.go, RFC 6298 is in rtt.go and timeout.go, and RFC 7661 is in validation.go.
package recovery
