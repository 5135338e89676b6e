package control

// TCPCounters asks what TCP has counted since the node started; answer TCPCounted.
type TCPCounters struct{}

func (TCPCounters) answers(TCPCounted) {}

// TCPCounted is what TCP has counted, all connections together.
type TCPCounted struct {
	SegmentsIn  uint64 `json:"segments_in"`
	SegmentsOut uint64 `json:"segments_out"` // with what was sent again
	Retransmits uint64 `json:"retransmits"`
	Timeouts    uint64 `json:"timeouts"`
	// Opened are the connections begun or accepted, Refused the resets for no connection.
	Opened  uint64 `json:"opened"`
	Refused uint64 `json:"refused"`
	// Established are the connections that are ESTABLISHED or CLOSE-WAIT now (RFC 4022's
	// tcpCurrEstab).
	Established int `json:"established"`
	// ChallengeAcks are RFC 5961's; the cookies are RFC 4987's.
	ChallengeAcks   uint64 `json:"challenge_acks"`
	CookiesSent     uint64 `json:"cookies_sent"`
	CookiesAccepted uint64 `json:"cookies_accepted"`
	CookiesFailed   uint64 `json:"cookies_failed"`
	// Drops are the segments that were not used, by reason.
	Drops []Drop `json:"drops"`
}
