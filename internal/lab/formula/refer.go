package formula

import (
	"slices"
	"strconv"
	"strings"

	"github.com/tidepool-net/tidepool/internal/diagnostic"
	"github.com/tidepool-net/tidepool/internal/lab/result"
)

func (p *parser) metric(ref Ref) term {
	for p.err == nil {
		switch {
		case p.peek("["):
			if ref.Flow != "" {
				p.fail(p.at, "a second flow in brackets", "only one")
			}
			p.at++
			ref.Flow = p.flow()
		case p.peek("("):
			if ref.Cell != nil {
				p.fail(p.at, "a second cell in parentheses", "only one")
			}
			p.at++
			ref.Cell = p.cell()
		default:
			p.refs = append(p.refs, ref)
			return term{unitOf(ref.Metric), func(env Env) (float64, error) {
				return env.Metric(ref)
			}}
		}
	}
	return term{}
}

func unitOf(m result.Metric) Unit {
	d, ok := result.Find(string(m))
	if ok && (counted(d.Unit) || d.Unit.Scaled()) {
		return d.Unit
	}
	return Unknown // other units, such as bytes/s, are not tracked
}

func (p *parser) flow() string {
	name, from, closed := p.raw(']')
	if !closed || !p.take("]") {
		p.fail(from, "a bracket is not closed", "goodput[0] or goodput[\"name\"]")
		return ""
	}
	p.at--
	defer func() { p.at++ }()
	i, err := strconv.Atoi(name)
	switch {
	case name == "":
		p.fail(from, "the brackets are empty", "an index from 0, or a name")
	case slices.Contains(p.scope.Flows, name):
	case err != nil:
		p.fail(from, "no flow "+diagnostic.Quote(name)+diagnostic.DidYouMean(name, p.scope.Flows),
			"one of "+list(p.scope.Flows))
	case i < 0 || i >= len(p.scope.Flows):
		p.fail(from, "there is no flow "+name,
			"an index from 0 to "+strconv.Itoa(len(p.scope.Flows)-1))
	}
	return name
}

func (p *parser) cell() []Selector {
	cell := []Selector{}
	for p.err == nil {
		text, from, closed := p.raw(')')
		if !closed {
			p.fail(from, "a parenthesis is not closed", ")")
			break
		}
		s := Selector{Value: text}
		if name, value, named := strings.Cut(text, "="); named {
			s.Name = strings.TrimSpace(name)
			s.Value = strings.Trim(strings.TrimSpace(value), `"`)
		}
		if text == "" {
			p.fail(from, "the parentheses are empty", "a swept value, such as cubic")
		}
		cell = append(cell, p.selector(from, s))
		if p.take(")") {
			break
		}
		if !p.take(",") {
			p.fail(from, "a parenthesis is not closed", ")")
		}
	}
	return cell
}

func (p *parser) selector(from int, s Selector) Selector {
	if p.err != nil {
		return s
	}
	var having, values []string
	known := false
	for _, v := range p.scope.Variables {
		if s.Name != "" && v.Name != s.Name {
			continue
		}
		known = known || len(v.Values) > 0
		values = append(values, v.Values...)
		if slices.Contains(v.Values, s.Value) {
			having = append(having, v.Name)
		}
	}
	switch {
	case s.Name != "" && !known:
		p.fail(from, diagnostic.Quote(s.Name)+" is not swept", p.swept())
	case len(having) == 0 && len(values) == 0:
		p.fail(from, "no cell "+diagnostic.Quote(s.Value)+": the file has no sweep", "")
	case len(having) == 0:
		near := diagnostic.DidYouMean(s.Value, values)
		p.fail(from, "no cell with "+diagnostic.Quote(s.Value)+near, "one of "+list(values))
	case len(having) > 1:
		p.fail(from, diagnostic.Quote(s.Value)+" could be a value of "+list(having),
			having[0]+"="+s.Value)
	default:
		s.Name = having[0]
	}
	return s
}

func (p *parser) swept() string {
	var all []string
	for _, v := range p.scope.Variables {
		if len(v.Values) > 0 {
			all = append(all, v.Name)
		}
	}
	if len(all) == 0 {
		return ""
	}
	return "one of " + list(all)
}

func list(words []string) string {
	const most = 8
	if len(words) > most {
		return strings.Join(words[:most], ", ") + " …"
	}
	return strings.Join(words, ", ")
}
