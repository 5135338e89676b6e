package repl

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/tidepool-net/tidepool/internal/control"
	"github.com/tidepool-net/tidepool/internal/netem"
)

// The help lists all options that the node accepts.
func TestImpairHelpListsEveryKeyword(t *testing.T) {
	for _, word := range netem.Words() {
		assert.Contains(t, impairHelp, word)
	}
	for _, word := range impairWords() {
		assert.Contains(t, netem.Words(), word)
	}
	for line := range strings.Lines(impairHelp) {
		assert.LessOrEqual(t, len([]rune(strings.TrimSpace(line))), 80, line)
	}
}

func TestPrintImpairments(t *testing.T) {
	list := []control.Impairment{
		{
			Iface: "if0", Way: control.WayOut, Seed: 7, Seen: 1000, Passed: 979, Lost: 21,
			Duplicated: 3, Delayed: 979, Inside: 3, QueueDropped: 4, Marked: 5, Reordered: 6,
			Words: "delay 20ms 5ms distribution normal loss 2% rate 10mbit limit 100 codel target 5ms interval 100ms seed 7",
		},
		{Iface: "if0", Way: control.WayIn, Words: "loss 1%", Seed: 99},
		{Iface: "if1", Way: control.WayOut, Words: "nothing"},
	}
	assert.Equal(t, `if0 out: delay 20ms 5ms distribution normal loss 2% rate 10mbit limit 100
         codel target 5ms interval 100ms seed 7
         1000 packets seen, 979 passed, 21 lost, 4 dropped by the queue, 5
         marked, 3 duplicated, 6 reordered, 979 delayed, 3 in transit
if0 in:  loss 1% (seed 99)
`, printImpairments(list, false))
	assert.Contains(t, printImpairments(list, true), "if1 out: nothing\n")
	assert.Equal(t, "no link is impaired; `help impair` lists the options\n", printImpairments(list[2:], false))
}

func TestPrintCounters(t *testing.T) {
	c := control.Counters{Packets: 7, Bytes: 420, Drops: []control.Drop{
		{Reason: "no such neighbor on the link", Packets: 12}, {Reason: "no route", Packets: 3},
	}}
	assert.Equal(t, `    TX:      packets           bytes   errors  dropped
                   7             420        0       15
        (no such neighbor on the link 12, no route 3)
`, printCounters("TX", c, 1))
	assert.Equal(t, `    TX:      packets           bytes   errors  dropped
                   7             420        0       15
        no such neighbor on the link                12
        no route                                     3
`, printCounters("TX", c, 2))
	assert.Equal(t, "    beneath (gso): 1 packets in, 3 out, 2 larger than the MTU, 4 waited for\n"+
		"        the kernel\n", printDevice(&control.Interface{
		Offload: "gso", Device: &control.DeviceCounters{
			InPackets: 1, Oversize: 2, OutPackets: 3, Waited: 4,
		},
	}))
}
