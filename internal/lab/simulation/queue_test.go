package simulation

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/tidepool-net/tidepool/internal/netem"
)

// A description has the name and the limits of the queue.
func TestDescribeQueue(t *testing.T) {
	for want, queue := range map[string]netem.Discipline{
		"droptail [bytes=26400]":             netem.DropTail{Bytes: 26400},
		"droptail [bytes=30000, packets=50]": netem.DropTail{Packets: 50, Bytes: 30000},
		"drophead [packets=10]":              netem.DropHead{Packets: 10},
		"codel [packets=50]":                 netem.CoDel{Packets: 50},
		"pie [bytes=9000]":                   netem.PIE{Bytes: 9000},
		"red [packets=90]":                   netem.RED{Packets: 90},
		"fq_codel [packets=10240]":           netem.FQCoDel{Packets: 10240},
		"codel":                              netem.CoDel{},
		"droptail [bytes=9, time=20ms]":      netem.DropTail{Bytes: 9, Time: 20 * time.Millisecond},
		"infinite":                           netem.DropTail{},
	} {
		assert.Equal(t, want, describeQueue(queue))
	}
	assert.Equal(t, "infinite", describeQueue(nil))
}
