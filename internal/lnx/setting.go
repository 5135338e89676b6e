package lnx

import (
	"bytes"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tidepool-net/tidepool/internal/diagnostic"
)

// setting is a value of a T: its name, the form of its word in a file, and its reader and writer.
type setting[T any] struct {
	name  string
	form  string                       // form of the word, for the form of the directive
	read  func(*report, Word, *T) bool // sets the value, or records an error
	write func(*T) string              // returns "" for the default, which Format omits
}

// settingOf returns a setting that is stored in a field. The zero value is the default.
func settingOf[T any, V comparable](
	name, form string, field func(*T) *V, read func(*report, Word) (V, bool), write func(V) string,
) setting[T] {
	return setting[T]{
		name, form,
		func(r *report, w Word, t *T) bool {
			v, ok := read(r, w)
			if ok {
				*field(t) = v
			}
			return ok
		},
		func(t *T) string {
			var zero V
			if *field(t) == zero {
				return ""
			}
			return write(*field(t))
		},
	}
}

// usually returns the setting with a default that is not zero.
func (s setting[T]) usually(text func(*T) string) setting[T] {
	write := s.write
	s.write = func(t *T) string {
		if value := write(t); value != text(t) {
			return value
		}
		return ""
	}
	return s
}

// count returns a setting that is a number.
func count[T any](
	name, form string, field func(*T) *int, read func(*report, Word) (int, bool),
) setting[T] {
	return settingOf(name, form, field, read, strconv.Itoa)
}

// within returns a reader for numbers from least to most. The unit appears in the error.
func within(least, most uint64, unit string) func(*report, Word) (int, bool) {
	return func(r *report, w Word) (int, bool) { return r.number(w, least, most, unit) }
}

// timer returns a setting that is a time in whole units. If least is 0, a 0 in the file turns the
// timer off, which is stored as -1, because zero is the default.
func timer[T any](
	name string, unit time.Duration, least, most uint64, field func(*T) *time.Duration,
) setting[T] {
	units := "milliseconds"
	if unit == time.Microsecond {
		units = "microseconds"
	}
	read := func(r *report, w Word) (time.Duration, bool) {
		n, ok := r.number(w, least, most, " "+units)
		return timeOrOff(n, unit), ok
	}
	write := func(d time.Duration) string { return strconv.FormatInt(int64(d/unit), 10) }
	return settingOf(name, strings.ToUpper(units), field, read, write)
}

// timeOrOff converts a number of units to a time, and 0 to -1.
func timeOrOff(n int, unit time.Duration) time.Duration {
	if n == 0 {
		return -1
	}
	return time.Duration(n) * unit
}

// switchOn returns a switch that is off by default. switchOff returns one that is on by default;
// its field is set when the file turns it off.
func switchOn[T any](name string, field func(*T) *bool) setting[T] {
	return switchTo(name, "on", field)
}

func switchOff[T any](name string, field func(*T) *bool) setting[T] {
	return switchTo(name, "off", field)
}

func switchTo[T any](name, position string, field func(*T) *bool) setting[T] {
	read := func(r *report, w Word) (bool, bool) {
		if w.Text != "on" && w.Text != "off" {
			r.bad(w, "not a switch", "on or off")
			return false, false
		}
		return w.Text == position, true
	}
	return settingOf(name, "on or off", field, read, func(bool) string { return position })
}

// choice returns a setting whose value is one of words. The first word is the default.
func choice[T any](name string, words []string, field func(*T) *string) setting[T] {
	read := func(r *report, w Word) (string, bool) {
		switch i := slices.Index(words, w.Text); i {
		case -1:
			r.bad(w, "not a mode"+diagnostic.DidYouMean(w.Text, words), diagnostic.OneOf(words))
			return "", false
		case 0:
			return "", true
		default:
			return words[i], true
		}
	}
	return settingOf(name, diagnostic.OneOf(words), field, read, func(v string) string { return v })
}

func names[T any](list []setting[T]) []string {
	out := make([]string, len(list))
	for i := range list {
		out[i] = list[i].name
	}
	return out
}

// written returns the settings of t that are not defaults, each after a space.
func written[T any](list []setting[T], t *T) (text string) {
	for _, s := range list {
		if value := s.write(t); value != "" {
			text += " " + s.name + " " + value
		}
	}
	return text
}

// directivesOf returns the directives for settings. Each may occur once in a file.
func directivesOf(list ...setting[Config]) []directive {
	out := make([]directive, len(list))
	for i, s := range list {
		last := strings.Count(s.name, " ") + 1
		out[i] = directive{
			s.name, s.name + " " + s.form, last + 1, last + 1,
			func(p *parser, l line) {
				w, next := l.words[last], *p.cfg
				if s.read(&p.report, w, &next) && p.once(s.name, w) {
					*p.cfg = next
				}
			},
			func(b *bytes.Buffer, c *Config) {
				if value := s.write(c); value != "" {
					b.WriteString(s.name + " " + value + "\n")
				}
			},
		}
	}
	return out
}
