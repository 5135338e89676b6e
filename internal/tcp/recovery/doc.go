// Package recovery is the loss detection and congestion control of a TCP sender. It sees ranges of
// sequence numbers, times and sizes, never a segment or a connection.
//
// A Recovery keeps a record of each segment between SND.UNA and SND.NXT, which it shares with the
// sender as a Space. The connection tells it what is sent (Push), what an acknowledgment says
// (BeginAck, Ack.Take, Ack.Digest) and that time has passed (Advance, OnTimeout). It asks how many
// bytes may leave (Allowance, Pace), what to retransmit (Resend, Spare) and when to come back
// (Deadline).
//
// The algorithms are one a file. Those that detect losses are behind the interface detector:
// RFC 8985 in rack.go and tlp.go, RFC 6675 in nextseg.go, RFC 6582 in newreno.go and go-back-N in
// gbn.go. RFC 5682 is in frto.go, RFC 3522, RFC 3708 and RFC 4015 are in undo.go, RFC 9937 is in
// episode.go, RFC 6298 in rtt.go and timeout.go, and RFC 7661 in validation.go.
package recovery
