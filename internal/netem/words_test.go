package netem_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/netem"
)

func TestWords(t *testing.T) {
	for text, want := range map[string]string{
		"off": "nothing", "": "nothing",
		"loss 0%":                                    "nothing",
		"delay 20ms":                                 "delay 20ms",
		"delay 1500usecs":                            "delay 1.5ms",
		"latency 2sec 100msec 25%":                   "delay 2s 100ms 25%",
		"delay 0ms 5ms overtake":                     "delay 0s 5ms overtake",
		"loss 2% delay 20ms 5ms":                     "delay 20ms 5ms loss 2%",
		"loss random 0.3% 25%":                       "loss 0.3% 25%",
		"loss every 100":                             "loss every 100",
		"loss gemodel 1% 10%":                        "loss gemodel 1% 10% 100% 0%",
		"loss gemodel 1%":                            "loss gemodel 1% 99% 100% 0%",
		"loss gemodel 1% 10% 70% 0.1%":               "loss gemodel 1% 10% 70% 0.1%",
		"drop 7,3,20-25,8":                           "drop 3,7-8,20-25",
		"dup 1% 10%":                                 "duplicate 1% 10%",
		"delay 10ms reorder 25% 50% gap 5":           "delay 10ms reorder 25% 50% gap 5",
		"delay 10ms gap 5":                           "delay 10ms reorder 100% gap 5",
		"reorder 1%":                                 "reorder 1%",
		"delay 5ms reorder 1% late 3ms":              "delay 5ms reorder 1% late 3ms",
		"corrupt 0.1% bits 3":                        "corrupt 0.1% bits 3",
		"truncate 5% seed 7":                         "truncate 5% seed 7",
		"rate 10mbit":                                "rate 10mbit limit 250000b",
		"rate 64kbit":                                "rate 64kbit limit 32kb",
		"rate 1.5mbit 20 limit 100":                  "rate 1500kbit 20 limit 100",
		"rate 125kbps limit 64kb":                    "rate 1mbit limit 64kb",
		"rate 10mbit codel":                          "rate 10mbit limit 1000 codel target 5ms interval 100ms",
		"rate 1gbit codel limit 50 target 1ms ecn":   "rate 1gbit limit 50 codel target 1ms interval 100ms ecn",
		"limit 50":                                   "limit 50",
		"limit 50,1mb":                               "limit 50,1024kb",
		"delay 10ms 2ms distribution pareto":         "delay 10ms 2ms distribution pareto",
		"delay 10ms 2ms distribution paretonormal":   "delay 10ms 2ms distribution paretonormal",
		"delay 10ms 2ms 5% dist uniform overtake":    "delay 10ms 2ms 5% overtake",
		"loss every 10 first 3":                      "loss every 10 first 3",
		"loss bytes 5,0,6":                           "loss bytes 0,5-6",
		"loss state 1%":                              "loss state 1% 99% 0% 100% 0%",
		"loss state 1% 10% 20% 30% 0.5%":             "loss state 1% 10% 20% 30% 0.5%",
		"loss onoff 2s 500msec":                      "loss onoff 2s 500ms",
		"loss onoff 2s 500ms poisson":                "loss onoff 2s 500ms poisson",
		"loss during 10s-12s,1m-90s":                 "loss during 10s-12s,1m0s-1m30s",
		"loss during 0s-1s 20%":                      "loss during 0s-1s 20%",
		"corrupt 1% bits 3 where payload":            "corrupt 1% bits 3 where payload",
		"corrupt 1% where headers":                   "corrupt 1% where headers",
		"police 12mbit 30000":                        "police 12mbit 30000b",
		"police 12mbit 32kb mark delay 5ms":          "delay 5ms police 12mbit 32kb mark",
		"rate 1mbit,2.5mbit@40s,0bit@1m":             "rate 1mbit,2500kbit@40s,0bit@1m0s limit 62500b",
		"rate 1mbit,2mbit@10s 24 repeat 20s":         "rate 1mbit,2mbit@10s 24 repeat 20s limit 37500b",
		"rate 5kbit 20 100 5":                        "rate 5kbit 20 100 5 limit 32kb",
		"rate 5mbit 0 48 limit 200ms":                "rate 5mbit 0 48 limit 200ms",
		"rate 1mbit limit 10,20kb,1s":                "rate 1mbit limit 10,20kb,1s",
		"slot 5ms":                                   "slot 5ms limit 65536kb",
		"slot 5ms 20ms bytes 64kb packets 32":        "slot 5ms 20ms packets 32 bytes 64kb limit 750kb",
		"slot distribution normal 10ms 2ms limit 9":  "slot distribution normal 10ms 2ms limit 9",
		"slot distribution uniform 10ms 2ms limit 9": "slot distribution uniform 10ms 2ms limit 9",
		"rate 1mbit droptail":                        "rate 1mbit limit 32kb",
		"rate 1mbit drophead limit 100":              "rate 1mbit limit 100 drophead",
		"rate 1mbit fq_codel": "rate 1mbit limit 10240 fq_codel flows 1024 quantum 1514b " +
			"memory_limit 32768kb target 5ms interval 100ms",
		"rate 1mbit fq_codel limit 100 flows 4 quantum 300 memory_limit 1mb noecn target 1ms": "rate 1mbit " +
			"limit 100 fq_codel flows 4 quantum 300b memory_limit 1024kb target 1ms interval 100ms noecn",
		"rate 1mbit pie": "rate 1mbit limit 1000 pie target 15ms tupdate 15ms alpha 2 beta 20 allowance 150ms",
		"rate 1mbit pie limit 100 alpha 4 beta 32 tupdate 30ms target 20ms ecn dq_rate_estimator allowance 1ms": "rate 1mbit " +
			"limit 100 pie target 20ms tupdate 30ms alpha 4 beta 32 allowance 1ms dq_rate_estimator ecn",
		"rate 1mbit red limit 120000b": "rate 1mbit limit 120000b red min 10000b max 30000b probability 10% " +
			"weight 0.2% avpkt 1000b",
		"rate 1mbit red min 20 max 60 probability 2% weight 1% avpkt 500 abrupt markall ecn": "rate 1mbit limit 32kb " +
			"red min 20 max 60 probability 2% weight 1% avpkt 500b abrupt ecn markall",
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

func TestParse(t *testing.T) {
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

func TestParseErrors(t *testing.T) {
	for text, want := range map[string]string{
		"delay 20ms lss 2%":                 `"lss" is not an impairment (did you mean loss?)`,
		"delay 20ms curl":                   `"curl" is not an impairment; expected a keyword such as delay, loss, `,
		"loss 2":                            `"2" is missing its percent sign; expected 2%`,
		"loss 101%":                         `"101%" is not a percentage; expected 0% to 100%`,
		"loss x%":                           `"x%" is not a percentage; expected loss SHARE%, such as 2%`,
		"loss":                              `the arguments are incomplete; expected loss SHARE%`,
		"delay 20":                          `"20" is missing its unit; expected 20ms or 20us`,
		"delay soon":                        `"soon" is not a time`,
		"delay -1ms":                        `"-1ms" is out of range; expected 0s to 1h0m0s`,
		"delay 1ms delay 2ms":               `"delay" is given twice`,
		"rate fast":                         `"fast" is not a rate`,
		"rate 0mbit":                        `"0mbit" is not a rate`,
		"codel":                             `"codel" is not usable alone; expected a rate, without which no queue forms`,
		"rate 1mbit ecn":                    `"ecn" is not usable alone; expected codel or fq_codel or pie or red`,
		"delay 5ms distribution normal":     `"distribution" is not usable alone; expected a jitter`,
		"delay 5ms 1ms distribution parteo": `"parteo" is an unknown distribution (did you mean pareto?)`,
		"delay 5ms 1ms dist ./x.dist":       `"./x.dist" is a file, which cannot be used here`,
		"loss state 60% 1% 0% 1% 50%":       `"60%" is too large: P13 and P14 together are above 100%`,
		"loss state 1% 60% 60%":             `"60%" is too large: P31 and P32 together are above 100%`,
		"loss onoff 0s 0s":                  `"0s" is zero`,
		"loss onoff 1s":                     `the arguments are incomplete; expected loss onoff TIME TIME [poisson]`,
		"loss during 5s":                    `"5s" is not a list of times; expected such as 10s-12s`,
		"loss during 5s-4s":                 `"5s-4s" is not a list of times; expected at most 1000 times in ascending order`,
		"loss during 1s-4s,3s-5s":           `is not a list of times; expected at most 1000 times in ascending order`,
		"loss every 5 first 0":              `"0" is not a valid number`,
		"loss bytes x":                      `"x" is not a list of numbers; expected numbers from 0`,
		"slot":                              `the arguments are incomplete; expected slot MIN`,
		"slot 5ms packets":                  `the arguments are incomplete; expected packets N`,
		"slot 5ms rate 1mbit":               `"rate" is in conflict with slot; expected only one of them`,
		"slot distribution gauss 5ms 1ms":   `"gauss" is an unknown distribution`,
		"rate 1mbit,2mbit":                  `"1mbit,2mbit" is not a rate; expected the first at 0`,
		"rate 1mbit@5s":                     `is not a rate; expected the first at 0`,
		"rate 1mbit,2mbit@5s,1mbit@5s":      `is not a rate; expected the first at 0, the others in order`,
		"rate 1mbit,2mbit@soon":             `is not a rate; expected a time after each @`,
		"rate 0bit":                         `"0bit" is not a rate`,
		"rate 1mbit repeat 5s":              `"repeat" is not usable alone; expected a rate in steps`,
		"rate 1mbit,2mbit@5s repeat 5s":     `"repeat" is too early; expected a time after the last step's 5s`,
		"rate 1mbit,2mbit@5s 20 48":         `"48" is not possible with a rate in steps`,
		"police 1mbit":                      `the arguments are incomplete; expected police RATE BURST [mark]`,
		"police 1mbit 0":                    `"0" is not a number of bytes`,
		"police slow 5":                     `"slow" is not a rate`,
		"corrupt 1% where tail":             `"tail" is not a part of a packet; expected headers or payload`,
		"where payload":                     `"where" is not usable alone; expected corrupt SHARE%`,
		"limit 100,200":                     `"100,200" is not a limit`,
		"limit 5ms":                         `"limit" is a time, which needs a rate; expected a rate`,
		"rate 1mbit fq_codel limit 5ms":     `"limit" is not a limit of fq_codel; expected a limit in packets or bytes`,
		"fq_codel":                          `"fq_codel" is not usable alone; expected a rate`,
		"rate 1mbit pie codel":              `"pie" is in conflict with codel; expected only one of them`,
		"rate 1mbit codel flows 5":          `"flows" is not usable alone; expected fq_codel`,
		"rate 1mbit target 5ms":             `"target" is not usable alone; expected codel or fq_codel or pie`,
		"rate 1mbit codel ecn noecn":        `"noecn" is in conflict with the other keyword`,
		"rate 1mbit pie alpha 33":           `"33" is not a weight`,
		"rate 1mbit red min 5":              `"min" is missing max; expected max N too`,
		"rate 1mbit limit 100 red":          `"red" is missing thresholds; expected min and max`,
		"rate 1mbit red min 5 max 10kb":     `"10kb" is in another unit than min`,
		"rate 1mbit red min 50 max 5":       `"max" is invalid: min would be 50 and max 5; expected min below max`,
		"rate 1mbit red max 1kb min lots":   `"lots" is not a queue length`,
		"rate 1mbit red max 9 weight 0%":    `"0%" is zero; expected more than 0%`,
		"rate 1mbit fq_codel target 1s":     `"target" is invalid: the target would be 1s and the interval 100ms`,
		"drop 0":                            `"0" is not a list of numbers; expected numbers from 1`,
		"drop 5-1":                          `"5-1" is not a list of numbers`,
		"drop 1-5000":                       `"1-5000" is too long`,
		"loss 1% drop 3":                    `"loss" is in conflict with drop; expected only one of them`,
		"drop 3 loss 1%":                    `"loss" is given twice`,
		"limit 0":                           `"0" is not a limit`,
		"seed 0":                            `"0" is not a seed`,
		"gap 0":                             `"0" is not a valid number`,
	} {
		_, err := netem.Parse(text)
		require.ErrorIs(t, err, netem.ErrConfig, text)
		assert.Contains(t, err.Error(), want, text)
	}
	_, err := netem.Parse("delay 20ms lss 2%")
	assert.Contains(t, err.Error(), "\n    delay 20ms lss 2%\n               ^^^")
	_, err = netem.Parse("rate 1mbit codel target 1s")
	require.ErrorIs(t, err, netem.ErrConfig)
	assert.ErrorContains(t, err, `"target" is invalid: the target would be 1s and the interval 100ms`)
}

// The caller reads a distribution's file. An error in the file is reported at the word that names
// it.
func TestParseWithFiles(t *testing.T) {
	read := func(name string, most int64) ([]byte, error) {
		text, ok := map[string]string{
			"./lte.dist": "# two\n-8192 8192\n", "./bad.dist": "1\nsecret",
			"lte.up": "0\n10\n10\n20\n", "bad.up": "0\n10\n12 secret\n", "back.up": "9\n3\n",
		}[name]
		assert.GreaterOrEqual(t, most, int64(256<<10))
		if !ok {
			return nil, errors.New("no such file")
		}
		return []byte(text), nil
	}
	c, err := netem.ParseWith("delay 10ms 2ms distribution ./lte.dist", read)
	require.NoError(t, err)
	assert.Equal(t, netem.RandomJitter{
		Size: 2 * time.Millisecond, Table: []int16{-8192, 8192}, Shape: "./lte.dist",
	}, c.Jitter)
	assert.Equal(t, "delay 10ms 2ms distribution ./lte.dist", c.String())
	_, err = netem.ParseWith("delay 10ms 2ms distribution /x", read)
	require.ErrorContains(t, err, `"/x" is a file that cannot be read: no such file`)
	_, err = netem.ParseWith("slot distribution ./bad.dist 10ms 2ms", read)
	require.ErrorContains(t, err, `"./bad.dist" is not a table of tc: line 2, field 1: must be a number`)
	assert.NotContains(t, err.Error(), "secret")

	c, err = netem.ParseWith("trace lte.up limit 50 delay 5ms", read)
	require.NoError(t, err)
	assert.Equal(t, netem.Opportunities{
		At: []time.Duration{0, 10 * ms, 10 * ms, 20 * ms}, Name: "lte.up",
	}, c.Rate)
	assert.Equal(t, "delay 5ms trace lte.up limit 50", c.String())
	c, err = netem.ParseWith("trace lte.up once", read)
	require.NoError(t, err)
	assert.Equal(t, "trace lte.up once limit 60000b", c.String())
	again, err := netem.ParseWith(c.String(), read)
	require.NoError(t, err)
	assert.Equal(t, c, again)
	for text, want := range map[string]string{
		"trace":                   `the arguments are incomplete; expected trace FILE [once]`,
		"trace none.up":           `"none.up" is a file that cannot be read: no such file`,
		"trace bad.up":            `"bad.up" is not a mahimahi trace: bad.up:3:3: not a time; expected whole`,
		"trace back.up":           `is not a mahimahi trace: back.up:2: 3 ms follows 9 ms; expected times in`,
		"rate 1mbit trace lte.up": `"trace" is in conflict with a rate or slots; expected only one of them`,
		"trace lte.up slot 1ms":   `"trace" is in conflict with a rate or slots; expected only one of them`,
	} {
		_, err := netem.ParseWith(text, read)
		require.ErrorContains(t, err, want, text)
		assert.NotContains(t, err.Error(), "secret")
	}
	_, err = netem.Parse("trace lte.up")
	assert.ErrorContains(t, err, `"lte.up" is a file, which cannot be used here; expected rate or slot`)
}

func FuzzWords(f *testing.F) {
	for _, text := range []string{
		"delay 20ms 5ms 25% distribution normal overtake loss 2% 5% duplicate 1%",
		"rate 10mbit 20 limit 64kb codel target 2ms interval 50ms ecn seed 7",
		"drop 3,7,20-25 corrupt 1% bits 3 truncate 2% reorder 5% 1% gap 3 late 1ms",
		"loss gemodel 1% 10% 70% 0.1%", "netem delay 1us loss every 3", "loss 1e-7%", "é loss",
		"rate 1mbit,2mbit@5s,0bit@6s 20 repeat 7s limit 10,64kb,3ms fq_codel flows 3 quantum 9 noecn",
		"loss state 1% 10% 20% 30% 1% police 1mbit 3kb mark rate 5mbit 1 48 5 pie alpha 3.5 ecn",
		"slot distribution pareto 5ms 1ms packets 3 red min 5 max 9 weight 1% abrupt limit 99",
		"loss during 1s-2s,3s-4s 5% slot 1ms 2ms bytes 99 drophead delay 1s 1ms distribution ./x.dist",
		"trace 1 once codel loss 1%", "trace ./x limit 4",
		"loss onoff 1s 2s poisson rate 1kbit red limit 9kb probability 100%", "loss bytes 1,5-9",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		read := func(name string, _ int64) ([]byte, error) {
			if strings.Contains(name, ".") {
				return []byte("-1 2 3"), nil
			}
			return []byte("1\n2\n2\n"), nil
		}
		c, err := netem.ParseWith(text, read)
		if err != nil {
			assert.NotEmpty(t, err.Error())
			return
		}
		l, err := netem.New(c, netem.Streams(1))
		require.NoError(t, err, "New accepts every parsed configuration")
		put(l, 1, 1, 100)
		words := c.String()
		if words == "nothing" {
			return
		}
		again, err := netem.ParseWith(words, read)
		require.NoError(t, err, words)
		assert.Equal(t, words, again.String())
	})
}
