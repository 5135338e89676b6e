package netem_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/netem"
)

func TestWords(t *testing.T) {
	for text, want := range map[string]string{
		"off": "nothing", "": "nothing",
		"loss 0%":                                  "nothing",
		"delay 20ms":                               "delay 20ms",
		"delay 1500usecs":                          "delay 1.5ms",
		"latency 2sec 100msec 25%":                 "delay 2s 100ms 25%",
		"delay 0ms 5ms overtake":                   "delay 0s 5ms overtake",
		"loss 2% delay 20ms 5ms":                   "delay 20ms 5ms loss 2%",
		"loss random 0.3% 25%":                     "loss 0.3% 25%",
		"loss every 100":                           "loss every 100",
		"loss gemodel 1% 10%":                      "loss gemodel 1% 10% 100% 0%",
		"loss gemodel 1%":                          "loss gemodel 1% 99% 100% 0%",
		"loss gemodel 1% 10% 70% 0.1%":             "loss gemodel 1% 10% 70% 0.1%",
		"drop 7,3,20-25,8":                         "drop 3,7-8,20-25",
		"dup 1% 10%":                               "duplicate 1% 10%",
		"delay 10ms reorder 25% 50% gap 5":         "delay 10ms reorder 25% 50% gap 5",
		"delay 10ms gap 5":                         "delay 10ms reorder 100% gap 5",
		"reorder 1%":                               "reorder 1%",
		"delay 5ms reorder 1% late 3ms":            "delay 5ms reorder 1% late 3ms",
		"corrupt 0.1% bits 3":                      "corrupt 0.1% bits 3",
		"truncate 5% seed 7":                       "truncate 5% seed 7",
		"rate 10mbit":                              "rate 10mbit limit 250000b",
		"rate 64kbit":                              "rate 64kbit limit 32kb",
		"rate 1.5mbit 20 limit 100":                "rate 1500kbit 20 limit 100",
		"rate 125kbps limit 64kb":                  "rate 1mbit limit 64kb",
		"rate 10mbit codel":                        "rate 10mbit limit 1000 codel target 5ms interval 100ms",
		"rate 1gbit codel limit 50 target 1ms ecn": "rate 1gbit limit 50 codel target 1ms interval 100ms ecn",
		"limit 50":                                 "limit 50",
		"tc qdisc add dev eth0 root netem delay 10ms 2ms distribution normal loss gemodel 1% 10%": "delay 10ms 2ms distribution normal loss gemodel 1% 10% 100% 0%",
	} {
		c, err := netem.Parse(text)
		require.NoError(t, err, text)
		assert.Equal(t, want, c.String(), text)
		again, err := netem.Parse(c.String())
		if want != "nothing" {
			require.NoError(t, err, want)
			assert.Equal(t, c, again, text)
		}
		_, err = netem.New(c, netem.Streams(1))
		assert.NoError(t, err, text)
	}
}

func TestWhatParseMakesOfWords(t *testing.T) {
	c, err := netem.Parse("delay 20ms 5ms 10% distribution normal loss 2% 30% duplicate 1% 2% " +
		"reorder 3% 4% corrupt 5% 6% bits 2 truncate 7% rate 8mbit 24 limit 9 seed 10")
	require.NoError(t, err)
	assert.Equal(t, netem.Config{
		Rate: netem.BitsPerSecond(8_000_000), Overhead: 24, Queue: netem.DropTail{Packets: 9},
		Loss: netem.CorrelatedLoss{Share: 0.02, Correlation: 0.3}, Duplicate: 0.01,
		Corrupt: netem.Corrupt{Share: 0.05, Bits: 2}, Truncate: 0.07,
		Delay: 20 * time.Millisecond, Jitter: netem.NormalJitter(5 * time.Millisecond),
		Reorder: netem.Reorder{Share: 0.03}, Seed: 10,
		Correlation: netem.Correlation{Duplicate: 0.02, Corrupt: 0.06, Reorder: 0.04, Jitter: 0.1},
	}, c)
}

func TestWrongWordsAreShownWhereTheyAre(t *testing.T) {
	for text, want := range map[string]string{
		"delay 20ms lss 2%":                 `"lss" is no impairment (did you mean loss?)`,
		"loss 2":                            `"2" is without its percent sign; want 2%`,
		"loss 101%":                         `"101%" is no percentage; want 0% to 100%`,
		"loss x%":                           `"x%" is no percentage; want loss SHARE%, such as 2%`,
		"loss":                              `something is missing at the end; want loss SHARE%`,
		"delay 20":                          `"20" is a time without its unit; want 20ms or 20us`,
		"delay soon":                        `"soon" is no time`,
		"delay -1ms":                        `"-1ms" is out of range; want 0s to 1h0m0s`,
		"delay 1ms delay 2ms":               `"delay" is there already`,
		"rate fast":                         `"fast" is no rate`,
		"rate 0mbit":                        `"0mbit" is no rate`,
		"codel":                             `"codel" is nothing by itself; want a rate: without one nothing waits`,
		"rate 1mbit ecn":                    `"ecn" is nothing by itself; want codel`,
		"delay 5ms distribution normal":     `"distribution" is nothing by itself; want a jitter`,
		"delay 5ms 1ms distribution pareto": `"pareto" is a distribution that is not known here`,
		"loss state 1%":                     `"state" is a model that is not known here`,
		"slot 1ms":                          `"slot" is a part of netem that is not known here`,
		"drop 0":                            `"0" is no list of packets`,
		"drop 5-1":                          `"5-1" is no list of packets`,
		"drop 1-5000":                       `"1-5000" is too long a list`,
		"loss 1% drop 3":                    `"loss" is another loss than drop; want one of them`,
		"drop 3 loss 1%":                    `"loss" is there already`,
		"limit 0":                           `"0" is no limit`,
		"seed 0":                            `"0" is no seed`,
		"gap 0":                             `"0" is no such number`,
	} {
		_, err := netem.Parse(text)
		require.ErrorIs(t, err, netem.ErrConfig, text)
		assert.Contains(t, err.Error(), want, text)
	}
	_, err := netem.Parse("delay 20ms lss 2%")
	assert.Contains(t, err.Error(), "\n    delay 20ms lss 2%\n               ^^^")
	_, err = netem.Parse("rate 1mbit codel target 1s")
	require.ErrorIs(t, err, netem.ErrConfig)
	assert.ErrorContains(t, err, `"target" is no good: the target would be 1s and the interval 100ms`)
}

func FuzzWords(f *testing.F) {
	for _, text := range []string{
		"delay 20ms 5ms 25% distribution normal overtake loss 2% 5% duplicate 1%",
		"rate 10mbit 20 limit 64kb codel target 2ms interval 50ms ecn seed 7",
		"drop 3,7,20-25 corrupt 1% bits 3 truncate 2% reorder 5% 1% gap 3 late 1ms",
		"loss gemodel 1% 10% 70% 0.1%", "netem delay 1us loss every 3", "loss 1e-7%", "é loss",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		c, err := netem.Parse(text)
		if err != nil {
			assert.NotEmpty(t, err.Error())
			return
		}
		l, err := netem.New(c, netem.Streams(1))
		require.NoError(t, err, "what is parsed can be built")
		put(l, 1, 1, 100)
		words := c.String()
		if words == "nothing" {
			return
		}
		again, err := netem.Parse(words)
		require.NoError(t, err, words)
		assert.Equal(t, words, again.String())
	})
}
