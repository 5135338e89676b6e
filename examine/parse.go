package examine

import (
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/tidepool-net/tidepool/internal/diagnostic"
)

// word is a word of a line, or a quoted text.
type word struct {
	text   string
	col    int // column in characters, from 1
	quoted bool
}

// parser reads one check file.
type parser struct {
	file   string
	line   int // counted from 1
	source string
	words  []word
	at     int
	errs   diagnostic.Errors
	check  Check
	kept   []string // names of the values that steps keep
	states []string
	seen   map[string]bool // header fields so far
}

// headers are the fields of a check file before its steps.
var headers = map[string]func(p *parser, rest string){
	"rfc":   func(p *parser, rest string) { p.check.RFC = rest },
	"area":  func(p *parser, rest string) { p.check.Area = rest },
	"story": func(p *parser, rest string) { p.check.Story = rest },
	"rule":  func(p *parser, rest string) { p.check.Rule = rest },
	"bug":   func(p *parser, rest string) { p.check.Bug = rest },
	"level": func(p *parser, _ string) {
		p.check.Level, _ = p.choice("a level", []string{LevelMust, LevelShould, LevelCourse})
	},
	"subject": func(p *parser, _ string) {
		w, _ := p.choice("a kind of subject", []string{"host", "router"})
		p.check.Router = w == "router"
	},
	"needs": func(p *parser, _ string) {
		for p.at < len(p.words) {
			w, ok := p.choice("a feature", features)
			if !ok {
				return
			}
			p.check.Needs = append(p.check.Needs, Feature(w))
		}
	},
	"given": func(p *parser, _ string) {
		for p.at < len(p.words) {
			w, ok := p.choice("a state", stateNames())
			if !ok {
				return
			}
			p.states = append(p.states, w)
		}
	},
	"limit": func(p *parser, _ string) {
		if s, ok := p.span(); ok && s.unit == "s" {
			p.check.Limit = time.Duration(s.n * float64(time.Second))
		} else if ok {
			p.fail(p.words[p.at-1], "the limit is not in seconds", "such as 20 s")
		}
	},
}

// required are the headers that every check has.
var required = []string{"rfc", "level", "area", "story", "rule", "bug"}

// Parse parses one check file. A file that names several states results in a check for each.
func Parse(file string, text []byte) ([]*Check, diagnostic.Errors) {
	p := &parser{file: file, seen: map[string]bool{}}
	p.check.Name, p.check.file = strings.TrimSuffix(file, extension), file
	p.readSteps(string(text))
	for _, name := range required {
		if !p.seen[name] {
			p.errs = append(p.errs, &diagnostic.Error{
				File: file, Line: p.line,
				Msg: "the check has no " + name, Want: "a line " + name + " …",
			})
		}
	}
	if len(p.check.steps) == 0 && len(p.errs) == 0 {
		p.errs = append(p.errs, &diagnostic.Error{
			File: file, Line: p.line,
			Msg: "the check has no steps", Want: "lines such as `send S` and `expect S. ack 1`",
		})
	}
	if len(p.errs) > 0 {
		return nil, p.errs
	}
	return p.expand(), nil
}

// readSteps parses all lines.
func (p *parser) readSteps(text string) {
	for source := range strings.Lines(text) {
		p.line++
		p.source = strings.TrimRightFunc(source, unicode.IsSpace)
		if p.cut() && len(p.words) > 0 {
			p.oneLine()
		}
	}
}

// expand returns a check for each state.
func (p *parser) expand() []*Check {
	if len(p.states) < 2 {
		c := p.check
		c.given = strings.Join(p.states, "")
		return []*Check{&c}
	}
	var list []*Check
	for _, state := range p.states {
		c := p.check
		c.given = state
		c.Name += "/" + state
		list = append(list, &c)
	}
	return list
}

// cut splits the line into words.
func (p *parser) cut() bool {
	p.words, p.at = p.words[:0], 0
	line := []rune(p.source)
	for i := 0; i < len(line); {
		switch {
		case unicode.IsSpace(line[i]):
			i++
		case line[i] == '#':
			return true
		case line[i] == '"':
			end := slices.Index(line[i+1:], '"')
			if end < 0 {
				p.fail(word{string(line[i:]), i + 1, false}, "the text is not closed",
					"a second \"")
				return false
			}
			p.words = append(p.words, word{string(line[i+1 : i+1+end]), i + 1, true})
			i += end + 2
		default:
			start := i
			for i < len(line) && !unicode.IsSpace(line[i]) && line[i] != '"' && line[i] != '#' {
				i++
			}
			p.words = append(p.words, word{string(line[start:i]), start + 1, false})
		}
	}
	return true
}

func (p *parser) oneLine() {
	first := p.words[0]
	p.at = 1
	if read, ok := headers[first.text]; ok {
		if p.seen[first.text] {
			p.fail(first, "the check has two lines "+first.text, "")
			return
		}
		if len(p.check.steps) > 0 {
			p.fail(first, first.text+" must come before the steps", "")
			return
		}
		p.seen[first.text] = true
		rest := strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(p.source), first.text))
		if rest == "" {
			p.fail(first, first.text+" has no value", "")
			return
		}
		read(p, rest)
		return
	}
	read, ok := verbs[first.text]
	if !ok {
		names := slices.Sorted(mapKeys(verbs))
		names = append(names, slices.Sorted(mapKeys(headers))...)
		p.fail(first, "unknown line "+diagnostic.Quote(first.text)+
			diagnostic.DidYouMean(first.text, names), "one of "+diagnostic.OneOf(names))
		return
	}
	s := step{verb: first.text, line: p.line, source: strings.TrimSpace(p.source)}
	before := len(p.errs)
	read(p, &s)
	if len(p.errs) > before {
		return
	}
	if p.at < len(p.words) {
		p.fail(p.words[p.at], "nothing may follow here", "the end of the line")
		return
	}
	p.check.steps = append(p.check.steps, s)
}

func mapKeys[V any](m map[string]V) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}

// fail records an error at a word.
func (p *parser) fail(w word, msg, want string) {
	p.errs = append(p.errs, &diagnostic.Error{
		File: p.file, Line: p.line, Col: w.col, Text: w.text, Msg: msg, Want: want,
		Source: p.source,
	})
}

// next returns the next word, or fails and names the expected one.
func (p *parser) next(want string) (word, bool) {
	if p.at == len(p.words) {
		p.fail(word{"", len([]rune(p.source)) + 1, false}, "the line ends too early", want)
		return word{}, false
	}
	p.at++
	return p.words[p.at-1], true
}

// peek skips the next word if it is w, and reports whether it did.
func (p *parser) peek(w string) bool {
	if p.at < len(p.words) && p.words[p.at].text == w && !p.words[p.at].quoted {
		p.at++
		return true
	}
	return false
}

// choice parses one of several words.
func (p *parser) choice(what string, list []string) (string, bool) {
	w, ok := p.next(what)
	if !ok {
		return "", false
	}
	if !slices.Contains(list, w.text) {
		p.fail(w, "unknown "+strings.TrimPrefix(strings.TrimPrefix(what, "an "), "a ")+" "+
			diagnostic.Quote(w.text)+diagnostic.DidYouMean(w.text, list),
			"one of "+diagnostic.OneOf(list))
		return "", false
	}
	return w.text, true
}

// span parses a time: a number and a unit.
func (p *parser) span() (span, bool) {
	const want = "a time such as 3 rtt, 2 rto or 1 period"
	w, ok := p.next(want)
	if !ok {
		return span{}, false
	}
	var s span
	if _, err := fmt.Sscanf(w.text, "%g", &s.n); err != nil || s.n <= 0 {
		p.fail(w, "not a number above 0", want)
		return span{}, false
	}
	s.unit, ok = p.choice("a unit of time", []string{"rtt", "rto", "period", "timeout", "s"})
	return s, ok
}

// expression parses a number, or a sum of numbers and symbols.
func (p *parser) expression(w word) (*expr, bool) {
	var e expr
	sign, text := int64(1), w.text
	for text != "" {
		end := strings.IndexAny(text[1:], "+-") + 1
		if end == 0 {
			end = len(text)
		}
		part := strings.TrimPrefix(text[:end], "+")
		if strings.HasPrefix(part, "-") {
			sign, part = -1, part[1:]
		}
		x, ok := p.part(w, part)
		if !ok {
			return nil, false
		}
		x.sign = sign
		e.parts = append(e.parts, x)
		sign, text = 1, text[end:]
	}
	return &e, len(e.parts) > 0
}

func (p *parser) part(w word, text string) (exprPart, bool) {
	var n int64
	if _, err := fmt.Sscanf(text, "%v", &n); err == nil && fmt.Sprint(n) == text ||
		strings.HasPrefix(text, "0x") && err == nil {
		return exprPart{number: n}, true
	}
	names := append(slices.Clone(symbols), p.kept...)
	if slices.Contains(names, text) {
		return exprPart{symbol: text}, true
	}
	p.fail(w, fmt.Sprintf("%s is neither a number nor a known value%s", diagnostic.Quote(text),
		diagnostic.DidYouMean(text, names)), "a sum of numbers and of "+diagnostic.OneOf(names))
	return exprPart{}, false
}
