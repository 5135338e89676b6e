package drill

import "github.com/tidepool-net/tidepool/internal/tcp"

// codepoints are the values of the ECN field. A segment without a mark in the script arrives as
// from a stack without ECN.
var codepoints = map[ecnMark]tcp.ECN{
	ecnNone: tcp.NotECT, ecnECT0: tcp.ECT0, ecnECT1: tcp.ECT1, ecnCE: tcp.CE,
}

// trainECN returns the codepoint of a train that leaves.
func trainECN(t *tcp.Train) ecnMark {
	for mark, e := range codepoints {
		if e == t.ECN {
			return mark
		}
	}
	return ecnUnchecked
}
