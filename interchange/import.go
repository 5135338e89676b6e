package interchange

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tidepool-net/tidepool/internal/diagnostic"
	"github.com/tidepool-net/tidepool/internal/lnx"
	"github.com/tidepool-net/tidepool/internal/topology"
)

// ErrImport means that no network can be read from a file.
var ErrImport = errors.New("cannot be imported")

// Import reads a containerlab topology (.yml, .yaml) or a mininet script (.py). For other file
// extensions it detects the format. check returns an error for invalid impair arguments; nil
// accepts all. The notes list what was not converted, with positions. The error wraps ErrImport or
// is a diagnostic.Errors.
func Import(
	file string, text []byte, check func(words string) *diagnostic.Error,
) (*topology.Plan, diagnostic.Errors, error) {
	m := &importer{file: file, check: check, index: map[string]int{}, told: map[string]bool{}}
	m.plan.About = naming{}.fit(filepath.Base(file))
	var err error
	switch extension := filepath.Ext(file); {
	case extension == ".py", extension != ".yml" && extension != ".yaml" &&
		bytes.Contains(text, []byte("addLink")):
		err = m.script(text)
	case extension == ".yml", extension == ".yaml", bytes.Contains(text, []byte("topology:")):
		err = m.topology(text)
	default:
		err = fmt.Errorf("%s: %w: it is neither a containerlab topology with `topology:` nor "+
			"a mininet script with addLink calls", file, ErrImport)
	}
	if err == nil {
		err = m.finish()
	}
	m.notes.Sort()
	return &m.plan, m.notes, err
}

type importer struct {
	file  string
	check func(words string) *diagnostic.Error
	plan  topology.Plan
	index map[string]int // indexes of nodes by their names in the file
	at    []place        // positions of nodes
	notes diagnostic.Errors
	told  map[string]bool // notes that were given and appear only once
}

// place is a line and a column of the file, counted from 1. 0 stands for the whole file.
type place struct{ line, col int }

// note records a part of the file that was not converted, and what to do about it.
func (m *importer) note(at place, format string, args ...any) {
	e := &diagnostic.Error{
		File: m.file, Line: at.line, Col: at.col, Note: true,
		Msg: diagnostic.Visible(fmt.Sprintf(format, args...)),
	}
	if text := e.Error(); !m.told[text] { // a loop would repeat its notes
		m.told[text] = true
		m.notes = append(m.notes, e)
	}
}

func (m *importer) fail(at place, format string, args ...any) error {
	return diagnostic.Errors{{
		File: m.file, Line: at.line, Col: at.col,
		Msg: diagnostic.Visible(fmt.Sprintf(format, args...)),
	}}
}

// node adds a node, unless the file added it before. A note reports that, or a changed name.
func (m *importer) node(at place, name string, role topology.Role) {
	if _, again := m.index[name]; again {
		m.note(at, "%s is added again: the first one counts; give each node one name", name)
		return
	}
	own := name
	if !topology.IsName(own) {
		own = naming{}.fit(name)
	}
	base := own
	for i := 2; slices.ContainsFunc(m.plan.Nodes, func(n topology.Node) bool {
		return n.Name == own
	}); i++ {
		suffix := fmt.Sprintf("-%d", i)
		own = base[:min(len(base), topology.LongestName-len(suffix))] + suffix
	}
	if own != name {
		m.note(at, "%q cannot name a node: it is %s", name, own)
	}
	m.index[name] = len(m.plan.Nodes)
	m.plan.Nodes = append(m.plan.Nodes, topology.Node{Name: own, Role: role})
	m.at = append(m.at, at)
}

// link adds a link between two nodes and returns true. If that is impossible, it adds a note and
// returns false.
func (m *importer) link(at place, a, b string, l topology.Link) bool {
	for _, name := range []string{a, b} {
		if _, ok := m.index[name]; !ok {
			m.note(at, "the link is left out: %s is not a node%s", diagnostic.Quote(name),
				diagnostic.DidYouMean(name, slices.Sorted(maps.Keys(m.index))))
			return false
		}
	}
	l.A, l.B = m.index[a], m.index[b]
	if l.A == l.B {
		m.note(at, "the link is left out: both ends are at %s", a)
		return false
	}
	m.plan.Links = append(m.plan.Links, l)
	return true
}

// impair returns the arguments of an impairment. It adds a note about an error.
func (m *importer) impair(at place, words string) string {
	words = strings.Join(strings.Fields(words), " ")
	if words == "" || m.check == nil {
		return words
	}
	if e := m.check(words); e != nil {
		m.note(at, "%q is not carried over: %s", words, e.Msg)
		return ""
	}
	return words
}

// address parses the IPv4 address of an end. An address without a prefix length gets the given one.
func (m *importer) address(at place, text string, bits int) netip.Prefix {
	return m.addressOf(at, text, bits, false)
}

// addressOf parses the address of an end for one IP version.
func (m *importer) addressOf(at place, text string, bits int, v6 bool) netip.Prefix {
	if text == "" {
		return netip.Prefix{}
	}
	if !strings.Contains(text, "/") {
		text = fmt.Sprintf("%s/%d", text, bits)
	}
	p, err := netip.ParsePrefix(text)
	switch {
	case err != nil || p.Addr().Is4() == v6:
		m.note(at, "%s is not an IPv%s address with a prefix length: the end gets another address",
			diagnostic.Quote(text), map[bool]string{false: "4", true: "6"}[v6])
	case lnx.AddrFault(p) != "":
		m.note(at, "%s is %s: the end gets another address", text, lnx.AddrFault(p))
	default:
		return p
	}
	return netip.Prefix{}
}

// finish removes nodes without links, and addresses that conflict.
func (m *importer) finish() error {
	if len(m.plan.Links) == 0 {
		return m.fail(place{}, "the file has no link between two nodes: "+
			"add `links` with `endpoints`, or addLink calls")
	}
	linked := map[int]bool{}
	for _, l := range m.plan.Links {
		linked[l.A], linked[l.B] = true, true
	}
	moved := map[int]int{}
	var nodes []topology.Node
	for i, n := range m.plan.Nodes {
		if !linked[i] {
			m.note(m.at[i], "%s is left out: it has no link", n.Name)
			continue
		}
		moved[i] = len(nodes)
		nodes = append(nodes, n)
	}
	m.plan.Nodes = nodes
	if m.plan.Family == topology.Dual && !slices.ContainsFunc(m.plan.Links,
		func(l topology.Link) bool { return l.Addrs != [2]netip.Prefix{} }) {
		m.plan.Family = topology.IPv6
	}
	for i := range m.plan.Links {
		l := &m.plan.Links[i]
		l.A, l.B = moved[l.A], moved[l.B]
	}
	if err := m.try(); err != nil {
		first, _, _ := strings.Cut(err.Error(), "\n")
		m.note(place{}, "the addresses do not fit together (%s): the nodes get others", first)
		for i := range m.plan.Links {
			m.plan.Links[i].Addrs = [2]netip.Prefix{}
			m.plan.Links[i].Addrs6 = [2]netip.Prefix{}
		}
	}
	return nil
}

// try generates the files and returns the errors in them. The addresses that the plan assigns are
// always valid.
func (m *importer) try() error {
	if !slices.ContainsFunc(m.plan.Links, func(l topology.Link) bool {
		return l.Addrs != [2]netip.Prefix{} || l.Addrs6 != [2]netip.Prefix{}
	}) {
		return nil
	}
	list, err := m.plan.Files()
	if err != nil {
		return nil //nolint:nilerr // the plan is too large, which the caller of Files reports
	}
	var configs []*lnx.Config
	for _, f := range list {
		c, err := lnx.Parse(f.Name+".lnx", f.Text)
		if err != nil {
			return err
		}
		configs = append(configs, c)
	}
	return lnx.CheckNetwork(configs...).Err()
}
