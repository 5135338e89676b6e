package drill

import "github.com/tidepool-net/tidepool/internal/tcp"

// codepoints are the ECN field's values; a segment without a mark in the script
// arrives as a stack without ECN sends it.
var codepoints = map[ecnMark]tcp.ECN{
	ecnNone: tcp.NotECT, ecnECT0: tcp.ECT0, ecnECT1: tcp.ECT1, ecnCE: tcp.CE,
}

// trainECN returns the mark that a train leaves with.
func trainECN(t *tcp.Train) ecnMark {
	for mark, e := range codepoints {
		if e == t.ECN {
			return mark
		}
	}
	return ecnUnchecked
}
