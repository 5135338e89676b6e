package control

// TCPCounters returns the counters of TCP.
type TCPCounters struct{ Answer[TCPCounted] }

// TCPCounted has the counters of TCP, for all connections together, since the node started.
type TCPCounted struct {
	SegmentsIn  uint64 `json:"segments_in"`
	SegmentsOut uint64 `json:"segments_out"` // segments sent, including retransmissions
	Retransmits uint64 `json:"retransmits"`
	Timeouts    uint64 `json:"timeouts"`
	// Opened counts initiated and accepted connections. Refused counts the resets for segments
	// without a connection.
	Opened  uint64 `json:"opened"`
	Refused uint64 `json:"refused"`
	// Established is the number of connections in ESTABLISHED or CLOSE-WAIT (RFC 4022's
	// tcpCurrEstab).
	Established int `json:"established"`
	// ChallengeAcks counts the challenge ACKs of RFC 5961, and the cookies are SYN cookies of RFC
	// 4987.
	ChallengeAcks   uint64 `json:"challenge_acks"`
	CookiesSent     uint64 `json:"cookies_sent"`
	CookiesAccepted uint64 `json:"cookies_accepted"`
	CookiesFailed   uint64 `json:"cookies_failed"`
	// Drops counts discarded segments by reason.
	Drops []Drop `json:"drops"`
}
