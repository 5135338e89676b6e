package tcp

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// RFC 5681 §3.1: in slow start the window grows by all that is acknowledged, also if it is
// acknowledged by several segments that come together, of which the last finds nothing sent
// since the first.
func TestAcknowledgmentsThatComeTogetherGrowTheWindow(t *testing.T) {
	for _, each := range []int{20, 10, 5, 2} {
		s := flight(t, 20, fullOptions, Config{})
		for i := each; i <= 20; i += each {
			s.send(ACK, 1, uint32(1+i*1000), 0)
		}
		assert.Equal(t, 40000, s.c.Info().Cwnd, "%d at a time", each)
	}
}
