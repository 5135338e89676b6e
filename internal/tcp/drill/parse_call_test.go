package drill

import "strconv"

// call reads [...end] name(arguments) = result [errno] [(note)].
func (p *parser) call(when timing) (action, error) {
	c := &call{}
	if p.peek().kind == tokEllipsis {
		p.pos++
		end, err := p.seconds()
		if err != nil {
			return nil, err
		}
		c.blocks, c.end = true, end
		if end < when.from {
			return nil, p.fail(p.peek(), "the call ends before it begins")
		}
	}
	t := p.take()
	c.name = t.text
	if t.kind != tokWord {
		return nil, p.fail(t, "%s: want a system call", t)
	}
	if calls[c.name] == nil {
		return nil, p.fail(t, "unknown system call %s", c.name)
	}
	if err := p.expect("("); err != nil {
		return nil, err
	}
	var err error
	if c.args, err = p.values(")"); err != nil {
		return nil, err
	}
	if err := p.expect("="); err != nil {
		return nil, err
	}
	if c.result, err = p.number("a result", -1, 1<<40); err != nil {
		return nil, err
	}
	if t := p.peek(); t.kind == tokWord {
		p.pos++
		c.errno = t.text
	}
	if (c.result < 0) != (c.errno != "") {
		return nil, p.fail(t, "a result of -1 must have an errno, and no other result may")
	}
	if p.accept("(") { // a note such as (Connection refused)
		for !p.accept(")") {
			if p.take().kind == tokEnd {
				return nil, p.fail(t, "unterminated note")
			}
		}
	}
	return c, nil
}

// values reads a list up to its closing sign.
func (p *parser) values(end string) ([]value, error) {
	if p.depth++; p.depth > maxDepth {
		return nil, p.fail(p.peek(), "nested too deeply")
	}
	defer func() { p.depth-- }()
	var list []value
	if p.accept(end) {
		return nil, nil
	}
	for {
		v, err := p.value()
		if err != nil {
			return nil, err
		}
		list = append(list, v)
		if !p.accept(",") {
			return list, p.expect(end)
		}
	}
}

func (p *parser) value() (value, error) {
	t := p.take()
	switch {
	case t.kind == tokEllipsis:
		return value{kind: valEllipsis}, nil
	case t.kind == tokInt:
		n, err := strconv.ParseInt(t.text, 0, 64)
		if err != nil {
			return value{}, p.fail(t, "%s is not a number", t)
		}
		return value{kind: valInt, n: n}, nil
	case t.kind == tokString:
		return value{kind: valString, text: t.text}, nil
	case t.kind == tokWord && p.accept("("):
		// htons(8080) and inet_addr("192.0.2.1") mean their arguments.
		list, err := p.values(")")
		if err != nil {
			return value{}, err
		}
		if len(list) != 1 {
			return value{}, p.fail(t, "%s takes one argument", t.text)
		}
		return list[0], nil
	case t.kind == tokWord:
		v := value{kind: valWords, words: []string{t.text}}
		for p.accept("|") {
			v.words = append(v.words, p.take().text)
		}
		return v, nil
	case t.kind == tokSign && t.text == "[":
		list, err := p.values("]")
		return value{kind: valList, list: list}, err
	case t.kind == tokSign && t.text == "{":
		return p.fieldsOf()
	}
	return value{}, p.fail(t, "%s: want an argument", t)
}

// fieldsOf reads {name=value, …}.
func (p *parser) fieldsOf() (value, error) {
	if p.depth++; p.depth > maxDepth {
		return value{}, p.fail(p.peek(), "nested too deeply")
	}
	defer func() { p.depth-- }()
	v := value{kind: valStruct, fields: map[string]value{}}
	for {
		t := p.take()
		if t.kind != tokWord {
			return v, p.fail(t, "%s: want a field's name", t)
		}
		if err := p.expect("="); err != nil {
			return v, err
		}
		f, err := p.value()
		if err != nil {
			return v, err
		}
		v.fields[t.text] = f
		if !p.accept(",") {
			return v, p.expect("}")
		}
	}
}

// has reports whether the value contains the word w.
func (v value) has(w string) bool {
	for _, s := range v.words {
		if v.kind == valWords && s == w {
			return true
		}
	}
	return false
}

// number returns the value as one number: itself, or the only element of a list.
func (v value) number() (int64, bool) {
	if v.kind == valList && len(v.list) == 1 {
		v = v.list[0]
	}
	return v.n, v.kind == valInt
}
