package tcp

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// TestRFC2018_4_EachRangeIsReported: of what arrives together with many gaps in between each range
// is reported, and twice while there is room (RFC 2018 §4): what no block tells of, its sender
// takes for lost, and sends again.
func TestRFC2018_4_EachRangeIsReported(t *testing.T) {
	s := opened(t, Config{})
	const runs = 12
	for i := range uint32(runs) {
		s.send(ACK, 1001+2000*i, 1, 1000)
	}
	s.collect()
	told := map[uint32]int{}
	for i, g := range s.out {
		for j, b := range g.options.SACK[:g.options.SACKCount] {
			assert.Equal(t, b.Start+1000, b.End)
			told[b.Start-s.peer]++
			if i == 0 && j == 0 {
				assert.Equal(t, s.peer+1001+2000*(runs-1), b.Start, "the latest first")
			}
		}
	}
	for i := range uint32(runs) {
		assert.GreaterOrEqual(t, told[1001+2000*i], 2, "range %d", i)
	}
	assert.LessOrEqual(t, len(s.out), runs, "RFC 5681 §4.2: no more than one for each segment")
	t.Log("# one that comes alone draws one, with what is most recent")
	s.out = nil
	s.send(ACK, 1001+2000*runs, 1, 1000)
	a := s.expect(ACK, 1, 1, 0)
	assert.Equal(t, s.peer+1001+2000*runs, a.options.SACK[0].Start)
	assert.Equal(t, s.peer+1001+2000*(runs-1), a.options.SACK[1].Start)
	s.quiet()
}
