package repl

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tidepool-net/tidepool/internal/diagnostic"
)

// value is the value of a flag. set parses it.
type value struct {
	text, kind string
	set        func(text string) error
}

func (v *value) String() string { return v.text }

func (v *value) Type() string { return v.kind }

func (v *value) Set(text string) error {
	err := v.set(text)
	if err == nil {
		v.text = text
	}
	return err
}

// ValueError says what the value of a flag must be.
type ValueError string

// Error implements the interface error.
func (w ValueError) Error() string { return "must be " + string(w) }

// check makes a flag reject values for which holds returns false.
func check(c *cobra.Command, flag, want string, holds func(text string) bool) {
	f := c.Flags().Lookup(flag)
	parsed := f.Value
	f.Value = &value{parsed.String(), parsed.Type(), func(text string) error {
		if err := parsed.Set(text); err != nil {
			return err
		}
		if !holds(parsed.String()) {
			return ValueError(want)
		}
		return nil
	}}
}

// Choose limits a flag to the given words. Tab completes them.
func Choose(c *cobra.Command, flag string, choice ...string) {
	CompleteFlag(c, flag, choice...)
	check(c, flag, diagnostic.OneOf(choice), func(text string) bool {
		return slices.Contains(choice, text)
	})
}

// CompleteFlag makes Tab complete a flag with the given words.
func CompleteFlag(c *cobra.Command, flag string, choice ...string) {
	flagWords(c, flag, words(choice...))
}

// Unlimited stands for no maximum.
const Unlimited = math.MaxFloat64

const (
	positive    = math.SmallestNonzeroFloat64
	mostSeconds = 1 << 31
)

// Limit makes flags reject numbers below least or above most.
func Limit(c *cobra.Command, least, most float64, flags ...string) {
	for _, flag := range flags {
		want := limits(c, flag, least, most)
		checkNumber(c, flag, want, func(n float64) bool { return n >= least && n <= most })
	}
}

// limitOrZero is like Limit, but also allows zero.
func limitOrZero(c *cobra.Command, least, most float64, flag string) {
	want := "0, or " + limits(c, flag, least, most)
	checkNumber(c, flag, want, func(n float64) bool { return n == 0 || n >= least && n <= most })
}

// limitWhole is like Limit, but also rejects fractions.
func limitWhole(c *cobra.Command, least, most float64, flag string) {
	want := limits(c, flag, least, most) + ", a whole number"
	checkNumber(c, flag, want, func(n float64) bool {
		return n >= least && n <= most && n == math.Trunc(n)
	})
}

func limits(c *cobra.Command, flag string, least, most float64) string {
	unit := ""
	switch name, _ := pflag.UnquoteUsage(c.Flags().Lookup(flag)); name {
	case "SECONDS", "BYTES":
		unit = " " + strings.ToLower(name)
	}
	first := strconv.FormatFloat(least, 'f', -1, 64)
	switch {
	case least == positive:
		return "more than 0" + unit
	case most >= mostSeconds:
		return first + " or more" + unit
	}
	return first + " to " + strconv.FormatFloat(most, 'f', -1, 64) + unit
}

func checkNumber(c *cobra.Command, flag, want string, holds func(n float64) bool) {
	check(c, flag, want, func(text string) bool {
		n, err := strconv.ParseFloat(text, 64)
		return err == nil && holds(n)
	})
}

// secondsVar defines a flag whose value is a number of seconds.
func secondsVar(
	f *pflag.FlagSet, at *time.Duration, name, short string, usual float64, usage string,
) {
	*at = inSeconds(usual)
	f.VarP(&value{strconv.FormatFloat(usual, 'f', -1, 64), "float64", func(text string) error {
		n, err := strconv.ParseFloat(text, 64)
		*at = inSeconds(n)
		return err
	}}, name, short, usage)
}

func inSeconds(n float64) time.Duration { return time.Duration(n * float64(time.Second)) }
