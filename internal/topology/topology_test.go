package topology

import (
	"encoding/xml"
	"errors"
	"fmt"
	"math"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/lnx"
)

// made parses the files of a plan, which must be valid on their own and together.
func made(t *testing.T, p *Plan) []*lnx.Config {
	t.Helper()
	files, err := p.Files()
	require.NoError(t, err)
	var all []*lnx.Config
	for _, f := range files {
		c, err := lnx.Parse(f.Name+".lnx", f.Text)
		require.NoError(t, err, "%s", f.Text)
		assert.Empty(t, c.Notes)
		all = append(all, c)
	}
	assert.Empty(t, lnx.CheckNetwork(all...))
	return all
}

// TestShapes checks that the generated files fit together, and that every node can reach every
// other.
func TestShapes(t *testing.T) {
	for _, tt := range []struct {
		words        string
		nodes, links int
		routers      int
	}{
		{"line 2", 2, 1, 0},
		{"line 3", 3, 2, 1},
		{"line 17", 17, 16, 15},
		{"ring 3", 5, 5, 3},
		{"ring 8", 10, 10, 8},
		{"grid 1 1", 3, 2, 1},
		{"grid 3 4", 14, 19, 12},
		{"tree 1", 3, 2, 1},
		{"tree 3", 15, 14, 7},
		{"tree 2 5", 31, 30, 6},
		{"star 1", 2, 1, 1},
		{"star 40", 41, 40, 1},
		{"random 1", 3, 2, 1},
		{"random 12", 14, 19, 12},
		{"random 4 6", 6, 8, 4},
		{"random 300 0", 302, 301, 300},
		{"line 1000", 1000, 999, 998},
	} {
		t.Run(tt.words, func(t *testing.T) {
			p, err := Generate(strings.Fields(tt.words), 7)
			require.NoError(t, err)
			assert.Len(t, p.Nodes, tt.nodes)
			assert.Len(t, p.Links, tt.links)
			for p.Family = Dual; p.Family > IPv4; p.Family-- {
				made(t, p)
			}
			configs := made(t, p)
			routers := 0
			for _, c := range configs {
				if c.Forwarding {
					routers++
				}
			}
			assert.Equal(t, tt.routers, routers)
			assert.NotContains(t, distances(len(p.Nodes), p.Links, 0), -1, "all are joined")
			if tt.nodes > 100 {
				return // too large for a picture
			}
			g := From(tt.words, configs)
			assert.Len(t, g.Nodes, tt.nodes)
			assert.Len(t, g.Links, tt.links)
			looksRight(t, g)
		})
	}
}

// looksRight checks that each node is in the picture once, that nodes do not overlap, and that the
// picture is XML.
func looksRight(t *testing.T, g *Graph) {
	t.Helper()
	at := g.lay()
	for i := range g.Nodes {
		for j := range i {
			assert.Greater(t, math.Hypot(at[i][0]-at[j][0], at[i][1]-at[j][1]), 60.0, "%s and %s",
				g.Nodes[i].Name, g.Nodes[j].Name)
		}
	}
	var picture struct {
		Width  float64  `xml:"width,attr"`
		Height float64  `xml:"height,attr"`
		Title  string   `xml:"title"`
		Texts  []string `xml:"text"`
	}
	require.NoError(t, xml.Unmarshal([]byte(g.SVG()), &picture))
	assert.Equal(t, g.Title, picture.Title)
	texts := map[string]int{}
	for _, s := range picture.Texts {
		texts[s]++
	}
	for i, n := range g.Nodes {
		assert.Equal(t, 1, texts[n.Name], n.Name)
		assert.Contains(t, g.DOT(), "\t\""+n.Name+"\" [shape=")
		assert.Contains(t, g.Mermaid(), "\""+n.Name+"\"")
		assert.True(t, at[i][0] > -1e4 && at[i][0] < 1e4)
	}
	assert.Less(t, picture.Width, 40000.0)
}

// TestSeedRepeatsTheNetwork checks that the same seed generates the same network.
func TestSeedRepeatsTheNetwork(t *testing.T) {
	texts := map[string]bool{}
	for _, seed := range []uint64{1, 1, 2} {
		p, err := Generate([]string{"random", "20"}, seed)
		require.NoError(t, err)
		texts[string(p.Format())] = true
	}
	assert.Len(t, texts, 2)
}

func TestInvalidShapes(t *testing.T) {
	for words, says := range map[string]string{
		"":            "the shape is missing: must be line, ring",
		"rnig 3":      `"rnig" is not a shape (did you mean ring?)`,
		"line":        "NODES is missing: the syntax is line NODES",
		"line x":      `NODES "x": must be a number from 2 to 1000, as in line NODES`,
		"line 1":      "from 2 to 1000",
		"line 3 4":    `unexpected argument after "3": the syntax is line NODES`,
		"ring 2":      "from 3 to 998",
		"grid 3":      "COLUMNS is missing",
		"tree 8 31":   "must be at most 1000",
		"random 3 -1": `LINKS "-1"`,
		"random 5 99": `LINKS "99": must be at most 10, the number of pairs of routers`,
		"random 1 1":  "at most 0",
	} {
		_, err := Generate(strings.Fields(words), 1)
		require.ErrorIs(t, err, ErrPlan, words)
		assert.Contains(t, err.Error(), says)
	}
	p, err := Generate([]string{"line", "3"}, 1)
	require.NoError(t, err)
	p.Port = 65534
	_, err = p.Files()
	require.ErrorContains(t, err, "the plan needs ports 65534 to 65537; ports are 1 to 65535")
	_, err = (&Plan{}).Files()
	require.ErrorContains(t, err, "the plan has no nodes")
	_, err = (&Plan{Nodes: []Node{{Name: "A"}}}).Files()
	require.ErrorContains(t, err, "A has no link")
}

// TestFurthest checks that Furthest returns the two hosts that are farthest apart. RIP's longest
// path has 15 hops (RFC 2453 §3.4).
func TestFurthest(t *testing.T) {
	for words, want := range map[string]int{"line 2": 0, "line 19": 17, "ring 6": 4, "grid 2 3": 4} {
		p, err := Generate(strings.Fields(words), 1)
		require.NoError(t, err)
		a, b, routers := p.Furthest()
		assert.Equal(t, []any{"A", "B", want}, []any{a, b, routers}, words)
	}
}

// TestPlans checks that a plan sets the routers, the options of links and the first port.
func TestPlans(t *testing.T) {
	p, err := Parse("x.net", []byte(`
# a comment
port 7000
link A R delay 20ms  loss 1% # words
link R B-2
link R S
link S T
host T
router A
host S
`), nil)
	require.NoError(t, err)
	configs := made(t, p)
	by := map[string]*lnx.Config{}
	for _, c := range configs {
		by[c.Name] = c
	}
	assert.True(t, by["A"].Forwarding, "it is said to be one")
	assert.True(t, by["R"].Forwarding, "it has three links")
	assert.False(t, by["B-2"].Forwarding)
	assert.False(t, by["S"].Forwarding, "it is said to be none")
	assert.Equal(t, uint16(7000), by["A"].Interfaces[0].UDP.Port)
	assert.Equal(t, "delay 20ms loss 1%", by["A"].Impair[0].Text())
	assert.Equal(t, "delay 20ms loss 1%", by["R"].Impair[0].Text())
	assert.Len(t, by["R"].Impair, 1)
	assert.Equal(t, "10.2.0.1", by["S"].Routes[0].Via.String(), "by a router")
	assert.Empty(t, by["T"].Routes, "a host leads nowhere")
	again, err := Parse("y.net", p.Format(), nil)
	require.NoError(t, err)
	assert.Equal(t, string(p.Format()), string(again.Format()))
}

// TestErrorsInPlans checks that all errors of a plan are reported at once, each with its line and
// column.
func TestErrorsInPlans(t *testing.T) {
	_, err := Parse("x.net", []byte("lnik A B\nlink A\n\tlink A A\nhost A! B\nrouter B\n"+
		"port 99999\nport\nrouter\nlink Ä B\nfamily 5\nfamily\n"), nil)
	bad, ok := errors.AsType[lnx.Errors](err)
	require.True(t, ok)
	var all []string
	for _, e := range bad {
		first, _, _ := strings.Cut(e.Error(), "\n")
		all = append(all, first)
	}
	assert.Equal(t, []string{
		`x.net:1:1: "lnik" is not a directive (did you mean link?); expected link, host, router, port, family, dns, nat, forward or node`,
		"x.net:2:1: the link must have two ends; expected link A B [delay 20ms loss 1%]",
		"x.net:3:9: A is linked to itself; expected another node",
		`x.net:4:6: "A!" cannot name a node; expected up to 64 letters, digits, dots, - and _`,
		"x.net:5:8: B has the other role in an earlier line; expected either host or router",
		`x.net:6:6: "99999" is not a port; expected a port from 1 to 65535`,
		"x.net:7:1: the line must have one port number; expected port 6000",
		"x.net:8:1: a name is missing; expected router NAME...",
		`x.net:9:6: "Ä" cannot name a node; expected up to 64 letters, digits, dots, - and _`,
		`x.net:10:8: "5" is not an address family; expected 4, 6 or dual`,
		"x.net:11:1: the line must have one address family; expected family 6",
	}, all)
	_, err = Parse("x.net", nil, nil)
	require.ErrorContains(t, err, "x.net: the file has no link; expected link A B")
}

// TestErrorsOfWholePlans checks that errors of the whole plan are reported at the line that
// causes them.
func TestErrorsOfWholePlans(t *testing.T) {
	long := strings.Repeat("delay 1ms ", 45)
	many := "link A0 B\n"
	for i := range MaxNodes {
		many += fmt.Sprintf("link A%d A%d\n", i, i+1)
	}
	for text, want := range map[string]string{
		"link A B\n\thost C D": "x.net:2:7: C has no link; expected link C B\n" +
			"    \thost C D\n    \t     ^\nx.net:2:9: D has no link; expected link D A\n" +
			"    \thost C D\n    \t       ^",
		"host B": "x.net:1:6: B has no link; expected link B OTHER\n    host B\n         ^",
		"node B localhost\nnode A localhost\nnode C localhost\nA <-> C": "x.net:1:6: B has no link; expected B <-> A\n" +
			"    node B localhost\n         ^",
		"link A B\nport 65535": "x.net:2:6: the plan needs ports 65535 to 65536; ports are 1 to " +
			"65535; expected a smaller first port\n    port 65535\n         ^^^^^",
		"port 1\nlink A B\nport 2": "x.net:3:1: the first port is already set on line 1; " +
			"expected only one such line\n    port 2\n    ^^^^",
		"link A B loss 1% \xff": "x.net:1:18: byte 0xff is not UTF-8; expected UTF-8 text\n" +
			"    link A B loss 1% \ufffd\n                     ^",
		"link A B\x00": "x.net:1:9: a NUL byte: this is a binary file; expected UTF-8 text",
		many:           "x.net: the plan has 1002 nodes, more than 1000; expected a smaller network",
		"link A B " + long: "x.net:1:10: the link's arguments have 449 characters; expected at most " +
			"400",
	} {
		_, err := Parse("x.net", []byte(text), nil)
		require.Error(t, err)
		assert.True(t, strings.HasPrefix(err.Error(), want), "%v", err)
	}
	p, err := Parse("x.net", []byte("\xef\xbb\xbflink A B\r\nport 7000\r\n"), nil)
	require.NoError(t, err, "a byte order mark and Windows' lines")
	assert.Equal(t, 7000, p.Port)
}

// TestParallelLinks checks that parallel links are drawn apart from each other.
func TestParallelLinks(t *testing.T) {
	p, err := Parse("x.net", []byte("link A B\nlink A B\nlink B A\n"), nil)
	require.NoError(t, err)
	g := From("x", made(t, p))
	at := g.lay()
	mids := map[[2]float64]bool{}
	for i := range g.Links {
		mids[g.middle(i, at)] = true
	}
	assert.Len(t, mids, 3)
	looksRight(t, g)
}

// TestLinkOptions checks that errors in link options are reported together with all others, at
// their position in the plan.
func TestLinkOptions(t *testing.T) {
	check := func(words string) *lnx.Error {
		for _, bad := range []string{"dealy", "200%"} {
			if before, _, found := strings.Cut(words, bad); found {
				col := utf8.RuneCountInString(before) + 1
				return &lnx.Error{Col: col, Text: bad, Msg: bad + " is wrong", Want: "better"}
			}
		}
		if strings.HasSuffix(words, "loss") {
			return &lnx.Error{Col: len(words) + 1, Msg: "loss has no value", Want: "a share"}
		}
		return nil
	}
	_, err := Parse("x.net", []byte("link A B delay 5ms\nlink B  C loss 1%   dealy 5ms # é\n"+
		"link A A loss 200%\nlink B C  loss # and no more\nlink A\n"), check)
	var bad lnx.Errors
	require.ErrorAs(t, err, &bad)
	var got []string
	for _, e := range bad {
		assert.NotEmpty(t, e.Source)
		assert.NotEmpty(t, e.Want)
		got = append(got, fmt.Sprintf("%d:%d %q %s", e.Line, e.Col, e.Text, e.Msg))
	}
	assert.Equal(t, []string{
		`2:21 "dealy" dealy is wrong`,
		`3:8 "A" A is linked to itself`,
		`3:15 "200%" 200% is wrong`,
		`4:15 "" loss has no value`,
		`5:1 "link" the link must have two ends`,
	}, got)
}

// TestPortsTaken checks that a port in use is reported at the plan's port line, or for the whole
// plan if it has no such line.
func TestPortsTaken(t *testing.T) {
	of := lnx.Errors{
		{File: "A.lnx", Line: 2, Col: 27, Msg: "if0 cannot use it", Want: "a free one, or luck"},
		{File: "B.lnx", Line: 2, Col: 27, Msg: "nor can B"},
	}
	p, err := Parse("x.net", []byte("link A B\nport  7000\n"), nil)
	require.NoError(t, err)
	assert.EqualError(t, p.PortsTaken("x.net", of), "x.net:2:7: its ports are 7000 to 7001; "+
		"if0 cannot use it, and 1 more are not free; expected a line `port N` with another first "+
		"port, or luck\n    port  7000\n          ^^^^")
	p, err = Parse("x.net", []byte("link A B\n"), nil)
	require.NoError(t, err)
	assert.EqualError(t, p.PortsTaken("x.net", of[1:]), "x.net: its ports are 6000 to 6001; "+
		"nor can B; expected a line `port N` with another first port")
}

// TestExampleNetworksCanBeDrawn checks that the example networks can be drawn, including those in
// old grammars.
func TestExampleNetworksCanBeDrawn(t *testing.T) {
	for folder, links := range map[string]int{
		"ring": 6, "tree": 5, "mesh": 10, "tun": 6, "old/loop": 7, "old/a-b-2012": 1,
	} {
		t.Run(folder, func(t *testing.T) {
			paths, err := filepath.Glob(filepath.Join("../../nets", folder, "*.lnx"))
			require.NoError(t, err)
			var all []*lnx.Config
			for _, path := range paths {
				text, err := os.ReadFile(path)
				require.NoError(t, err)
				c, err := lnx.Parse(path, text)
				require.NoError(t, err)
				all = append(all, c)
			}
			g := From(folder, all)
			assert.Len(t, g.Links, links)
			g.Nodes[0].Down = true
			looksRight(t, g)
			assert.Contains(t, g.SVG(), ` down"`)
			assert.Contains(t, g.DOT(), `style="dashed"`)
			assert.Contains(t, g.Mermaid(), "style n0 stroke-dasharray")
		})
	}
}

// FuzzParse checks that no text makes Parse panic. An accepted plan must parse back from its own
// text, and must generate valid files.
func FuzzParse(f *testing.F) {
	for _, text := range []string{
		"link A B\n", "port 1\nhost A\nlink A B delay 20ms\n", "link A A", "router\n", "\xff link",
		"link A B # c\r\nlink B C\tloss 1%\n", "link é B", "#\n",
		"link A R\nlink R S\nnat R S symmetric udp 2m\nforward R tcp 80 A:8080\nforward R udp 53 A:53\n",
		"link A R\nlink R S\nnat R S sessions 5 per-host 9\nforward R tcp 80 S:+1\n",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		p, err := Parse("f.net", []byte(text), nil)
		if err != nil {
			bad, ok := errors.AsType[lnx.Errors](err)
			require.True(t, ok)
			require.NotEmpty(t, bad.Error())
			return
		}
		again, err := Parse("f.net", p.Format(), nil)
		require.NoError(t, err)
		require.Equal(t, string(p.Format()), string(again.Format()))
		files, err := p.Files()
		require.NoError(t, err, "a plan that is read can be made")
		for _, f := range files {
			_, err := lnx.Parse(f.Name+".lnx", f.Text)
			require.NoError(t, err, "%s", f.Text)
		}
	})
}

// The addresses of a file are kept. Two addresses of one subnet stay as they are. Others become
// point-to-point links, and a router has a route to the host and announces it. The plan then takes
// its own addresses from another network.
func TestAddressesOfLinks(t *testing.T) {
	p := Plan{
		NamesAt: NoNames,
		Nodes: []Node{
			{Name: "h"}, {Name: "r", Role: Router}, {Name: "s", Role: Router},
		},
		Links: []Link{
			{A: 0, B: 1, Addrs: [2]netip.Prefix{netip.MustParsePrefix("10.0.0.1/8")}},
			{A: 1, B: 2, Addrs: [2]netip.Prefix{
				netip.MustParsePrefix("10.1.0.1/30"), netip.MustParsePrefix("10.1.0.2/30"),
			}},
			{A: 2, B: 1},
		},
	}
	text := func(i int) []string { return lines(t, &p, i) }
	assert.Equal(t, []string{
		"interface if0 10.0.0.1/32 127.0.0.1:6000",
		"neighbor 100.64.0.2 at 127.0.0.1:6001 via if0",
		"routing static",
		"route 0.0.0.0/0 via 100.64.0.2",
	}, text(0))
	assert.Equal(t, []string{
		"interface if0 100.64.0.2/32 127.0.0.1:6001",
		"neighbor 10.0.0.1 at 127.0.0.1:6000 via if0",
		"interface if1 10.1.0.1/30 127.0.0.1:6002",
		"neighbor 10.1.0.2 at 127.0.0.1:6003 via if1",
		"interface if2 100.64.2.2/24 127.0.0.1:6005",
		"neighbor 100.64.2.1 at 127.0.0.1:6004 via if2",
		"routing rip",
		"route 10.0.0.1/32 via 10.0.0.1",
		"rip originate prefix 10.0.0.1/32",
		"rip advertise-to 10.1.0.2",
		"rip advertise-to 100.64.2.1",
	}, text(1))
}

// lines returns the lines of a node's file, without comments.
func lines(t *testing.T, p *Plan, node int) (list []string) {
	t.Helper()
	files, err := p.Files()
	require.NoError(t, err)
	for line := range strings.Lines(string(files[node].Text)) {
		line, _, _ = strings.Cut(line, " #")
		if line = strings.TrimSpace(line); line != "" && line[0] != '#' {
			list = append(list, line)
		}
	}
	return list
}

// TestFamilies checks that link N has 2001:db8:N::/64, and that routers speak RIPng, alone or in
// addition to RIP.
func TestFamilies(t *testing.T) {
	p, err := Parse("x.net", []byte("family 6\ndns off\nlink A R\nlink R S\nlink S B\n"), nil)
	require.NoError(t, err)
	assert.Equal(t, []string{
		"interface if0 2001:db8::1/64 127.0.0.1:6000",
		"neighbor 2001:db8::2 at 127.0.0.1:6001 via if0",
		"routing static",
		"route ::/0 via 2001:db8::2",
	}, lines(t, p, 0))
	assert.Equal(t, []string{
		"interface if0 2001:db8::2/64 127.0.0.1:6001",
		"neighbor 2001:db8::1 at 127.0.0.1:6000 via if0",
		"interface if1 2001:db8:1::1/64 127.0.0.1:6002",
		"neighbor 2001:db8:1::2 at 127.0.0.1:6003 via if1",
		"routing ripng",
	}, lines(t, p, 1))
	again, err := Parse("y.net", p.Format(), nil)
	require.NoError(t, err)
	assert.Equal(t, IPv6, again.Family)
	p.Family = Dual
	assert.Equal(t, []string{
		"interface if0 10.2.0.2/24 127.0.0.1:6005",
		"address if0 2001:db8:2::2/64",
		"neighbor 10.2.0.1 at 127.0.0.1:6004 via if0",
		"neighbor 2001:db8:2::1 at 127.0.0.1:6004 via if0",
		"routing static",
		"route 0.0.0.0/0 via 10.2.0.1",
		"route ::/0 via 2001:db8:2::1",
	}, lines(t, p, 3))
	list := lines(t, p, 1)
	assert.Equal(t, []string{"routing rip ripng", "rip advertise-to 10.1.0.2"},
		list[len(list)-2:])
	p.Links = make([]Link, 1024)
	assert.Equal(t, "2001:db8:3ff::1/64", p.addrs6(1023)[0].String())
	p.course = true
	_, err = p.Files()
	require.ErrorContains(t, err, "the course's form of plans has IPv4 only, not family dual")
}
