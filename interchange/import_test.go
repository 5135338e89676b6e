package interchange_test

import (
	"flag"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/interchange"
	"github.com/tidepool-net/tidepool/internal/diagnostic"
	"github.com/tidepool-net/tidepool/internal/lnx"
	"github.com/tidepool-net/tidepool/internal/topology"
)

var update = flag.Bool("update", false, "write the golden files")

// checkWords rejects those impairments in testdata that are invalid.
func checkWords(words string) *diagnostic.Error {
	if strings.Contains(words, "quick") || strings.Contains(words, "some") {
		return &diagnostic.Error{Msg: "not a number"}
	}
	return nil
}

// imported is the result of an import: the plan, the addresses from the file, and the notes.
func imported(p *topology.Plan, notes diagnostic.Errors) string {
	var b strings.Builder
	b.Write(p.Format())
	for _, l := range p.Links {
		for i, node := range []int{l.A, l.B} {
			for _, a := range []netip.Prefix{l.Addrs[i], l.Addrs6[i]} {
				if a.IsValid() {
					b.WriteString("address " + p.Nodes[node].Name + " " + a.String() + "\n")
				}
			}
		}
	}
	for _, n := range notes {
		b.WriteString(n.Error() + "\n")
	}
	return b.String()
}

// valid asserts that the files of a plan are valid individually and together.
func valid(t *testing.T, p *topology.Plan) []*lnx.Config {
	t.Helper()
	files, err := p.Files()
	require.NoError(t, err)
	var configs []*lnx.Config
	for _, f := range files {
		c, err := lnx.Parse(f.Name+".lnx", f.Text)
		require.NoError(t, err)
		configs = append(configs, c)
	}
	require.NoError(t, lnx.CheckNetwork(configs...).Err())
	return configs
}

// Importing a file in testdata results in the network of the golden file next to it.
func TestImport(t *testing.T) {
	all, err := filepath.Glob("testdata/*.*")
	require.NoError(t, err)
	for _, file := range all {
		if filepath.Ext(file) == ".golden" {
			continue
		}
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		p, notes, err := interchange.Import(filepath.Base(file), text, checkWords)
		require.NoError(t, err, file)
		valid(t, p)
		got := imported(p, notes)
		if *update {
			require.NoError(t, os.WriteFile(file+".golden", []byte(got), 0o600))
		}
		want, err := os.ReadFile(file + ".golden")
		require.NoError(t, err)
		assert.Equal(t, string(want), got, file)
	}
}

// A parameter that a call omits has its default value, whatever other arguments the call has.
func TestMininetParameters(t *testing.T) {
	const script = `from mininet.topo import Topo
from mininet.net import Mininet

class T(Topo):
    def build(self, n=2, bw=10):
        for i in range(n - 1):
            a = self.addHost('a%d' % i, ip='10.0.%d.1/24' % i)
            b = self.addHost('b%d' % i, ip='10.0.%d.2/24' % i)
            self.addLink(a, b, bw=bw)

net = Mininet(topo=T(CALL))
`
	for call, want := range map[string][2]int{ // the expected links, and their rate in Mbit/s
		"": {1, 10}, "3": {2, 10}, "n=3": {2, 10}, "bw=5": {1, 5}, "3, 7": {2, 7}, "3, bw=5": {2, 5},
	} {
		text := strings.Replace(script, "CALL", call, 1)
		p, notes, err := interchange.Import("t.py", []byte(text), checkWords)
		require.NoError(t, err, call)
		assert.Empty(t, notes, call)
		assert.Len(t, p.Links, want[0], call)
		rate := fmt.Sprintf("rate %dmbit", want[1])
		assert.Equal(t, want[0], strings.Count(string(p.Format()), rate), "T(%s):\n%s", call, p.Format())
	}
}

// A network that containerlab's format can represent is the same after export and import: nodes,
// roles, links, addresses and impairments. There are no notes.
func TestContainerlabRoundTrip(t *testing.T) {
	plan, err := topology.Generate([]string{"grid", "2", "3"}, 1)
	require.NoError(t, err)
	plan.Links[1].Words = "delay 20ms loss 1%"
	ring := networks(t)["ring"]
	ring.Nodes = valid(t, plan)
	for _, n := range []*interchange.Network{
		ring, networks(t)["ring"], networks(t)["loop"], networks(t)["dual-stack"],
		networks(t)["ipv6-only"],
	} {
		done := exported(t, n, "containerlab")
		back, notes, err := interchange.Import(done.Files[0].Name, done.Files[0].Text, nil)
		require.NoError(t, err)
		assert.Empty(t, notes)
		was, is := topology.From("", n.Nodes), topology.From("", valid(t, back))
		assert.Equal(t, was.Nodes, is.Nodes)
		ends := func(g *topology.Graph) (list []string) {
			for _, e := range g.Links {
				text := e.Subnet.String()
				for _, s := range e.Ends {
					text += " " + g.Nodes[s.Node].Name + "=" + s.Addr.String()
				}
				list = append(list, text)
			}
			return list
		}
		assert.ElementsMatch(t, ends(was), ends(is))
		for i, c := range valid(t, back) {
			assert.Len(t, c.Impair, len(n.Nodes[i].Impair))
			assert.ElementsMatch(t, addresses(n.Nodes[i]), addresses(c))
		}
	}
}

// addresses lists the addresses of a node.
func addresses(c *lnx.Config) (list []netip.Prefix) {
	for i := range c.Interfaces {
		list = append(list, c.Interfaces[i].Addrs()...)
	}
	return list
}

// A script of an export can be imported.
func TestMininetRoundTrip(t *testing.T) {
	for name, n := range networks(t) {
		done := exported(t, n, "mininet")
		back, notes, err := interchange.Import(done.Files[0].Name, done.Files[0].Text, nil)
		require.NoError(t, err, name)
		for _, note := range notes { // notes only about switches and nodes without links
			assert.Regexp(t, "is a switch|has no link", note.Msg)
		}
		links := 0
		for _, e := range topology.From("", n.Nodes).Links {
			if len(e.Ends) == 2 {
				links++
			} else if len(e.Ends) > 2 {
				links += len(e.Ends)
			}
		}
		assert.Len(t, back.Links, links, name)
		valid(t, back)
	}
}

func TestImportErrors(t *testing.T) {
	for text, want := range map[string]string{
		"a.py\ndef f(): f()\nf()\nx.addLink(1, 2)": "a.py: the file has no link between two nodes: " +
			"add `links` with `endpoints`, or addLink calls",
		"a.yml\nname: x\ntopology:\n  nodes:\n   a: {}\n  links: [": "a.yml:5:10: invalid YAML: sequence end token ']' not found",
		"a.yml\nname: x\nname: y\n":                                 `a.yml:2:1: invalid YAML: mapping key "name" already defined at [1:1]`,
		"a.yml\nname: x\n": "a.yml:1:1: not a containerlab topology: add `topology:` with " +
			"`nodes:` and `links:`",
		"a.yml\n":                               "a.yml: the file is empty: must be a containerlab topology",
		"a.yml\n" + strings.Repeat("[", 100000): "a.yml:1:51: nested too deeply: at most 50 levels",
		"a.yml\ntopology:\n  nodes: {a: {}, b: {}}\n": "a.yml: the file has no link between two nodes: " +
			"add `links` with `endpoints`, or addLink calls",
		"a.py\nx = 1\n": "a.py: the file has no link between two nodes: " +
			"add `links` with `endpoints`, or addLink calls",
		"a.py\n" + strings.Repeat("a b\n", 200): "a.py: not a mininet script: more than 100 lines cannot be read; " +
			"write the links as plain addLink calls",
		"a.txt\nhello\n": "a.txt: cannot be imported: it is neither a containerlab topology with `topology:` nor a mininet " +
			"script with addLink calls",
	} {
		file, text, _ := strings.Cut(text, "\n")
		_, notes, err := interchange.Import(file, []byte(text), nil)
		assert.Less(t, len(notes), 3, text)
		if assert.Error(t, err, text) {
			first, _, _ := strings.Cut(err.Error(), "\n")
			assert.Equal(t, want, first)
		}
	}
}

// Import returns a network or an error for every file.
func FuzzImport(f *testing.F) {
	all, err := filepath.Glob("testdata/*.*")
	require.NoError(f, err)
	for _, file := range all {
		if text, err := os.ReadFile(file); err == nil && filepath.Ext(file) != ".golden" {
			f.Add(filepath.Ext(file) == ".py", string(text))
		}
	}
	f.Fuzz(func(t *testing.T, script bool, text string) {
		file := "a.yml"
		if script {
			file = "a.py"
		}
		p, _, err := interchange.Import(file, []byte(text), checkWords)
		if err == nil && len(p.Nodes) < 50 && len(p.Links) < 50 {
			valid(t, p)
		}
	})
}
