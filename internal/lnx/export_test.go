package lnx

import "strings"

// Plain returns the Config without grammar, name and positions, so that tests can compare the rest.
func (c *Config) Plain() *Config {
	out := *c
	out.Name, out.file, out.lines = "", "", nil
	out.Grammar = GrammarNew
	out.Notes = nil
	out.Interfaces = nil
	for _, i := range c.Interfaces {
		i.Pos, i.addrAt, i.udpAt = Pos{}, Pos{}, Pos{}
		out.Interfaces = append(out.Interfaces, i)
	}
	out.Neighbors = nil
	for _, n := range c.Neighbors {
		n.Pos, n.udpAt, n.ifaceAt = Pos{}, Pos{}, Pos{}
		out.Neighbors = append(out.Neighbors, n)
	}
	out.Routes = nil
	for _, r := range c.Routes {
		r.Pos, r.viaAt = Pos{}, Pos{}
		out.Routes = append(out.Routes, r)
	}
	out.Impair = nil
	for _, l := range c.Impair {
		l.ifaceAt, l.wordAt, l.end = Pos{}, nil, Pos{}
		out.Impair = append(out.Impair, l)
	}
	out.Forwards = nil
	for _, d := range c.Forwards {
		d.Pos = Pos{}
		out.Forwards = append(out.Forwards, d)
	}
	return &out
}

// DirectiveNames returns the keywords of all directives.
func DirectiveNames() []string {
	var names []string
	for i := range directives {
		names = append(names, directives[i].name)
	}
	return names
}

// Usages returns the forms of the directives that have exactly one form.
func Usages() []string {
	var list []string
	for i := range directives {
		if u := directives[i].usage; !strings.ContainsAny(u, "[,") && !strings.Contains(u, " or ") {
			list = append(list, u)
		}
	}
	return list
}

// LinkKeys returns the keys of the link directive.
func LinkKeys() []string { return names(linkSettings) }
