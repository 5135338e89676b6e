package tcp

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// RFC 5681 §3.1: in slow start the window grows by all acknowledged data, even if several
// acknowledgments arrive together and nothing is sent between them.
func TestBatchedAcknowledgmentsGrowTheWindow(t *testing.T) {
	for _, each := range []int{20, 10, 5, 2} {
		s := flight(t, 20, fullOptions, Config{})
		for i := each; i <= 20; i += each {
			s.send(ACK, 1, uint32(1+i*1000), 0)
		}
		assert.Equal(t, 40000, s.c.Info().SndCwnd, "%d at a time", each)
	}
}

// RFC 5681 §3.1: half of FlightSize is half of the data that the path carried, even if the
// acknowledgments of the data before a hole and the duplicates after it arrive together.
func TestFlightSizeOfBatchedAcknowledgments(t *testing.T) {
	for _, recovery := range []string{"newreno", "sack", "gbn"} {
		cfg := Config{}
		cfg.Recovery.Strategy = recovery
		s := flight(t, 20, fullOptions, cfg)
		s.send(ACK, 1, 12001, 0)
		for i := range uint32(7) {
			if recovery == "sack" {
				s.sack(12001, 13001, 14001+i*1000)
				continue
			}
			s.send(ACK, 1, 12001, 0)
		}
		assert.Equal(t, 10000, s.c.Info().SndSsthresh, recovery)
	}
}
