package lnx

import (
	"math"
	"strconv"
	"strings"
)

// Share is a part of a whole, in millionths: exact, so that it is written back
// as it was read.
type Share uint32

const (
	wholeShare     = 1_000_000
	percentShare   = wholeShare / 100
	percentDigits  = 4 // decimals of a percentage that a Share can hold
	bitsPerKilobit = 1_000
)

// ShareOf returns the share that is nearest to a number from 0 to 1.
func ShareOf(fraction float64) Share { return Share(math.Round(fraction * wholeShare)) }

// Fraction returns the share as a number from 0 to 1.
func (s Share) Fraction() float64 { return float64(s) / wholeShare }

// String returns the share in percent, such as "2%" or "0.5%".
func (s Share) String() string {
	text := strconv.Itoa(int(s / percentShare))
	if rest := s % percentShare; rest > 0 {
		digits := strconv.Itoa(int(rest + percentShare))[1:]
		text += "." + strings.TrimRight(digits, "0")
	}
	return text + "%"
}

// share reads a percentage. The sign is required: 0.02 could be meant either way.
func (p *parser) share(w word) (Share, bool) {
	text, found := strings.CutSuffix(w.text, "%")
	whole, decimals, _ := strings.Cut(text, ".")
	switch {
	case !found, !isNumber(whole), strings.Contains(text, ".") && !isNumber(decimals):
		p.bad(w, "not a percentage", wantShare)
		return 0, false
	case len(strings.TrimRight(decimals, "0")) > percentDigits:
		p.bad(w, "finer than 0.0001%", wantShare)
		return 0, false
	}
	decimals = (decimals + "0000")[:percentDigits]
	millionths, err := strconv.ParseUint(whole+decimals, 10, 32)
	if err != nil || millionths > wholeShare {
		p.bad(w, "not a percentage", wantShare)
		return 0, false
	}
	return Share(millionths), true
}

// rateUnits are the units of a rate, the largest first.
var rateUnits = []struct {
	name string
	bits int64
}{
	{"gbit", bitsPerKilobit * bitsPerKilobit * bitsPerKilobit},
	{"mbit", bitsPerKilobit * bitsPerKilobit},
	{"kbit", bitsPerKilobit},
	{"bit", 1},
}

// rate reads a speed in bits per second.
func (p *parser) rate(w word) (int64, bool) {
	for _, unit := range rateUnits {
		digits, found := strings.CutSuffix(w.text, unit.name)
		if !found {
			continue
		}
		n, err := strconv.ParseInt(digits, 10, 64)
		if err != nil || !isNumber(digits) || n == 0 || n > maxRateBits/unit.bits {
			break
		}
		return n * unit.bits, true
	}
	p.bad(w, "not a rate", wantRate)
	return 0, false
}

// formatRate returns a rate in the largest unit that divides it.
func formatRate(bits int64) string {
	for _, unit := range rateUnits {
		if bits%unit.bits == 0 {
			return strconv.FormatInt(bits/unit.bits, 10) + unit.name
		}
	}
	return ""
}
