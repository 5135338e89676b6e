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
	for _, l := range c.ImpairLines(name) {
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

// CheckWords checks the words of an impair line outside a file. It returns their error or nil.
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
