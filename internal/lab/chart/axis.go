package chart

import (
	"math"
	"strconv"
	"strings"
)

// Axis is the horizontal or the vertical axis of a panel.
type Axis struct {
	Label    string
	Min, Max float64 // limits of the axis: finite, and Min below Max
	Log      bool    // logarithmic; Min is above 0
	Reversed bool    // reversed: greater values are further left, or further down
	// Names, if set, replace the numbers 0, 1, 2 and so on.
	Names []string
	// At lists the positions of the numbers. It is used if all of them have room.
	At []float64
	// Per converts values to numbers on the axis. For example, it is 0.001 if values are in seconds
	// and the label says milliseconds. 0 stands for 1.
	Per float64
	// Bare axes have neither numbers nor a label, because the panel below has them.
	Bare bool
}

type tick struct {
	value float64
	label string // text of the tick; empty: a short tick between two numbers
}

// at maps a value of the axis to a position between from and to, the two ends of the axis.
func (a *Axis) at(value, from, to float64) float64 {
	low, high := a.Min, a.Max
	if a.Log {
		value, low, high = math.Log(value), math.Log(low), math.Log(high)
	}
	share := (value - low) / (high - low)
	if a.Reversed {
		share = 1 - share
	}
	return from + share*(to-from)
}

// drawable returns the axis with limits that can be drawn.
func (a Axis) drawable() Axis {
	if len(a.Names) > 0 {
		a.Min, a.Max, a.Log = -0.5, float64(len(a.Names))-0.5, false
	}
	const widest = 1e300
	if math.IsNaN(a.Min) || math.IsNaN(a.Max) {
		a.Min, a.Max = 0, 1
	}
	a.Min, a.Max = max(a.Min, -widest), min(a.Max, widest)
	if a.Log && !(a.Min > 0) {
		a.Log = false
	}
	if !(a.Max-a.Min > 1e-12*max(math.Abs(a.Min), math.Abs(a.Max))) {
		a.Max = a.Min + max(1, math.Abs(a.Min)/10)
		if a.Log {
			a.Max = a.Min * 10
		}
	}
	return a
}

// ticks returns as many numbers as fit on the axis. apart returns the distance that a number needs.
func (a *Axis) ticks(length float64, apart func(label string) float64) []tick {
	if !(a.Per > 0) || len(a.Names) > 0 {
		return a.plainTicks(length, apart)
	}
	inUnit := *a
	inUnit.Min, inUnit.Max = a.Min/a.Per, a.Max/a.Per
	inUnit.At = nil
	for _, v := range a.At {
		inUnit.At = append(inUnit.At, v/a.Per)
	}
	list := inUnit.plainTicks(length, apart)
	for i := range list {
		list[i].value *= a.Per
	}
	return list
}

func (a *Axis) plainTicks(length float64, apart func(label string) float64) []tick {
	if len(a.At) > 0 {
		if list := a.given(); a.fits(list, length, apart) {
			return list
		}
	}
	for n := max(2, min(8, int(length/14))); ; n-- {
		list := a.choose(n)
		if n <= 2 || a.fits(list, length, apart) {
			return list
		}
	}
}

// given returns the numbers at the positions in At. Fractions have three significant digits.
func (a *Axis) given() []tick {
	var list []tick
	for _, v := range a.At {
		if v >= a.Min && v <= a.Max {
			short := strconv.FormatFloat(v, 'f', -1, 64)
			_, fraction, _ := strings.Cut(short, ".")
			digits := max(0, 2-int(math.Floor(math.Log10(math.Max(math.Abs(v), 1e-12)))))
			list = append(list, tick{v, format(v, min(len(fraction), digits, 6))})
		}
	}
	return list
}

func (a *Axis) choose(n int) []tick {
	switch {
	case len(a.Names) > 0:
		return a.named(n)
	case a.Log && a.Max/a.Min >= 4:
		return a.decades(n)
	default:
		return linear(a.Min, a.Max, n)
	}
}

func (a *Axis) fits(list []tick, length float64, apart func(string) float64) bool {
	last, room := math.Inf(-1), 0.0
	for _, t := range list {
		if t.label == "" {
			continue
		}
		at := a.at(t.value, 0, length)
		need := apart(t.label)
		if math.Abs(at-last) < (need+room)/2 {
			return false
		}
		last, room = at, need
	}
	return true
}

func (a *Axis) named(n int) []tick {
	every := 1
	if n < 8 { // some of the numbers have no room
		every = (len(a.Names) + n - 1) / n
	}
	var list []tick
	for i, name := range a.Names {
		if i%every == 0 {
			list = append(list, tick{float64(i), Clean(name, 32)})
		}
	}
	return list
}

// linear places numbers at multiples of 1, 2 or 5 times a power of ten.
func linear(least, greatest float64, most int) []tick {
	span := greatest - least
	step := math.Pow(10, math.Floor(math.Log10(span/float64(most))))
	for _, factor := range []float64{1, 2, 5, 10} {
		if span/(step*factor) <= float64(most) {
			step *= factor
			break
		}
	}
	decimals := max(0, int(math.Ceil(-math.Log10(step)-1e-9)))
	var list []tick
	for i := math.Ceil(least/step - 1e-9); i*step <= greatest+1e-9*span && len(list) < 50; i++ {
		value := i*step + 0 // adding 0 avoids a negative zero
		list = append(list, tick{value, format(value, decimals)})
	}
	return list
}

// decades places numbers at powers of ten, and at 2 and 5 times these if there are few.
func (a *Axis) decades(n int) []tick {
	first := math.Floor(math.Log10(a.Min))
	count := math.Log10(a.Max / a.Min)
	every := math.Max(1, math.Ceil(count/float64(n)))
	var list []tick
	for e := first; math.Pow(10, e) <= a.Max*(1+1e-9) && len(list) < 400; e++ {
		for m := 1; m < 10; m++ {
			value := float64(m) * math.Pow(10, e)
			if value < a.Min*(1-1e-9) || value > a.Max*(1+1e-9) {
				continue
			}
			t := tick{value: value}
			few := m == 2 || m == 5
			if math.Mod(e-first, every) == 0 && (m == 1 || few && 3*count <= float64(n)) {
				t.label = format(value, max(0, int(-math.Floor(math.Log10(value)+1e-9))))
			}
			list = append(list, t)
		}
	}
	return list
}

// format formats a number with a true minus sign. Large numbers get an SI prefix, very small ones a
// power of ten.
func format(value float64, decimals int) string {
	s := strconv.FormatFloat(value, 'f', decimals, 64)
	switch magnitude := math.Abs(value); {
	case value == 0:
	case magnitude >= 1e15 || magnitude < 1e-4:
		s = powers(value)
	case magnitude >= 1e6:
		at := int(math.Log10(magnitude)+1e-9) / 3
		s = strconv.FormatFloat(value/math.Pow(1000, float64(at)), 'g', 4, 64) +
			" " + string("kMGT"[at-1])
	}
	return strings.Replace(s, "-", "−", 1)
}

// powers formats a number with a power of ten: 2·10⁻⁵.
func powers(value float64) string {
	digits, power, _ := strings.Cut(strconv.FormatFloat(value, 'e', -1, 64), "e")
	if len(digits) > 4 {
		digits, power, _ = strings.Cut(strconv.FormatFloat(value, 'e', 2, 64), "e")
	}
	n, _ := strconv.Atoi(power) // strconv formatted it
	raised := strings.Map(func(r rune) rune {
		switch r {
		case '-':
			return '⁻'
		case '1':
			return '¹'
		case '2':
			return '²'
		case '3':
			return '³'
		}
		return '⁰' + r - '0'
	}, strconv.Itoa(n))
	if digits == "1" {
		return "10" + raised
	}
	return digits + "·10" + raised
}
