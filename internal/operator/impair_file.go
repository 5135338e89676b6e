package operator

import (
	"errors"
	"strings"
	"unicode/utf8"

	"github.com/tidepool-net/tidepool/internal/files"
	"github.com/tidepool-net/tidepool/internal/lnx"
	"github.com/tidepool-net/tidepool/internal/netem"
	"github.com/tidepool-net/tidepool/internal/node"
)

// impairmentsOf returns the impairments of an interface in a file, for sent and for received
// packets. Nil means no impairment.
func impairmentsOf(c *lnx.Config, name string) (both [2]*netem.Config, err error) {
	if f, ok := c.Interface(name); ok && f.Impair != (lnx.Impairments{}) {
		cfg := impairment(&f.Impair)
		both = [2]*netem.Config{&cfg, &cfg}
	}
	for i := range c.Impair {
		l := &c.Impair[i]
		if l.Iface != name {
			continue
		}
		cfg, err := node.ParseImpairment(l.Text(), files.Machine())
		if err != nil {
			return both, err
		}
		if l.Way != lnx.WayIn {
			both[0] = &cfg
		}
		if l.Way != lnx.WayOut {
			both[1] = &cfg
		}
	}
	return both, nil
}

// impairment converts a link line to the impairments of each direction.
func impairment(i *lnx.Impairments) netem.Config {
	c := netem.Config{
		Delay: i.Delay, Duplicate: i.Duplicate.Fraction(),
		Corrupt: netem.Corrupt{Share: i.Corrupt.Fraction()},
		Reorder: netem.Reorder{Share: i.Reorder.Fraction()},
	}
	if i.Delay == 0 && i.Reorder > 0 {
		c.Reorder.Late = netem.Lateness
	}
	if i.Loss > 0 {
		c.Loss = netem.UniformLoss(i.Loss.Fraction())
	}
	if i.Jitter > 0 {
		c.Jitter = netem.UniformJitter(i.Jitter)
	}
	if i.RateBitsPerSec > 0 {
		c.Rate = netem.BitsPerSecond(i.RateBitsPerSec)
		c.Queue = netem.UsualQueue(netem.BitsPerSecond(i.RateBitsPerSec))
	}
	return c
}

// Check returns the errors that package lnx cannot find: impair lines that cannot be parsed.
func Check(c *lnx.Config) (list lnx.Errors) {
	for i := range c.Impair {
		l := &c.Impair[i]
		if at, e := wrongWords(l.Text()); e != nil {
			list = append(list, c.AtImpair(l, at, e.Text, e.Msg, e.Want))
		}
	}
	return list
}

// CheckWords parses the words of an impair line as if they were a file of their own. It returns
// their error or nil.
func CheckWords(words string) *lnx.Error {
	_, e := wrongWords(words)
	return e
}

// wrongWords returns the error in the words of an impair line and its byte offset, or nil.
func wrongWords(words string) (int, *lnx.Error) {
	_, err := node.ParseImpairment(words, files.Machine())
	if w, ok := errors.AsType[*netem.WordError](err); ok {
		return w.At, &lnx.Error{
			Col: 1 + utf8.RuneCountInString(words[:min(w.At, len(words))]), Text: w.Word,
			Msg: w.Message(), Want: w.Want, Source: words,
		}
	}
	if err != nil {
		first, _, _ := strings.Cut(words, " ")
		return 0, &lnx.Error{Col: 1, Text: first, Msg: err.Error(), Source: words}
	}
	return 0, nil
}
