package interchange_test

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/interchange"
	"github.com/tidepool-net/tidepool/internal/ci/testenv"
	"github.com/tidepool-net/tidepool/internal/lnx"
)

// Tools that `.ci/run setup` installs in the user's cache.
const (
	composeTool    = "tidepool-compose-go-2.16.2/cmd"
	kubernetesTool = "tidepool-kubernetes-validate-1.37.0"

	containerlabSchema = "tidepool-containerlab-0.69.3"
)

// cached returns the path of such a tool.
func cached(t *testing.T, name string) string {
	t.Helper()
	dir, err := os.UserCacheDir()
	require.NoError(t, err)
	path := filepath.Join(dir, name)
	if _, err := os.Stat(path); err != nil {
		t.Skip("skip: needs " + name)
	}
	return path
}

// odd is a network whose files have each unusual feature that matters for exports.
var odd = map[string]string{
	"on": "interface eth0 10.0.0.1/24 127.0.0.1:6000\nneighbor 10.0.0.2 at 127.0.0.1:6001 via eth0\n" +
		"routing rip2\nrip key eth0 1 md5 pa$sw${x}\n",
	"1": "interface if0 10.0.0.2/24 127.0.0.1:6001\ninterface if1 10.0.1.2/24 127.0.0.2:6001\n" +
		"interface t 10.8.0.1/24 tun:t0\n" +
		"neighbor 10.0.0.1 at 127.0.0.1:6000 via if0\nneighbor 10.0.1.1 at 127.0.0.9:6000 via if1\n" +
		"publish 8080 10.0.0.1:80\nimpair if1 delay 5ms distribution ./lte.dist\n" +
		"routing rip2\nrip key if0 1 md5 pa$sw${x}\n",
	"A": "interface if0 10.9.0.1/24 127.0.0.1:6009\nneighbor 10.9.0.2 at 127.0.0.1:6010 via if0\n" +
		"neighbor 10.9.0.3 at 127.0.0.1:6011 via if0\n",
	"a": "interface if0 10.9.0.2/24 127.0.0.1:6010\nneighbor 10.9.0.1 at 127.0.0.1:6009 via if0\n" +
		"neighbor 10.9.0.3 at 127.0.0.1:6011 via if0\n",
	"my nodé": "interface if0 10.9.0.3/24 127.0.0.1:6011\n" +
		"neighbor 10.9.0.1 at 127.0.0.1:6009 via if0\n" +
		"neighbor 10.9.0.2 at 127.0.0.1:6010 via if0\n",
}

// networks are the networks that the tests export.
func networks(t *testing.T) map[string]*interchange.Network {
	t.Helper()
	list := map[string]*interchange.Network{}
	add := func(network, file string, text []byte) {
		c, err := lnx.Parse(file, text)
		require.NoError(t, err)
		if list[network] == nil {
			list[network] = &interchange.Network{
				Name: network, Image: "tidepool:v1", Subnet: netip.MustParsePrefix("172.30.0.0/16"),
			}
		}
		list[network].Nodes = append(list[network].Nodes, c)
	}
	for _, name := range []string{"on", "1", "A", "a", "my nodé"} {
		add("Odd 1", name+".lnx", []byte(odd[name]))
	}
	for _, folder := range []string{
		"ring", "mesh", "rip2-md5", "tun", "old/loop", "old/a-b-2012", "dual-stack", "ipv6-only",
	} {
		files, err := filepath.Glob("../nets/" + folder + "/*.lnx")
		require.NoError(t, err)
		require.NotEmpty(t, files)
		for _, file := range files {
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			add(filepath.Base(folder), filepath.Base(file), text)
		}
	}
	return list
}

// exported exports a network.
func exported(t *testing.T, n *interchange.Network, to string) *interchange.Export {
	t.Helper()
	done, err := n.Export(to)
	require.NoError(t, err)
	return done
}

// run runs another program and returns its output.
func run(t *testing.T, input []byte, name string, args ...string) []byte {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Stdin = bytes.NewReader(input)
	var out, complaint bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &complaint
	require.NoError(t, cmd.Run(), "%v\n%s%s", cmd.Args, out.String(), complaint.String())
	return out.Bytes()
}

// written writes the files of an export into the folder and returns the path of the first file.
func written(t *testing.T, dir string, done *interchange.Export) string {
	t.Helper()
	for _, f := range done.Files {
		require.NoError(t, os.WriteFile(filepath.Join(dir, f.Name), f.Text, 0o600))
	}
	return filepath.Join(dir, done.Files[0].Name)
}

// same asserts that exported files describe the same network as the originals: the same Config
// except for the UDP addresses, which must lead to the right nodes.
func same(t *testing.T, n *interchange.Network, texts []string) {
	t.Helper()
	require.Len(t, texts, len(n.Nodes))
	configs := make([]*lnx.Config, len(texts))
	for i, text := range texts {
		c, err := lnx.Parse(n.Nodes[i].Name+".lnx", []byte(text))
		require.NoError(t, err)
		configs[i] = c
		was, is := string(n.Nodes[i].Format()), string(c.Format())
		for j := range n.Nodes[i].Interfaces {
			if n.Nodes[i].Interfaces[j].Tun == nil {
				was = strings.ReplaceAll(was, n.Nodes[i].Interfaces[j].UDP.String(), "UDP")
				is = strings.ReplaceAll(is, c.Interfaces[j].UDP.String(), "UDP")
			}
		}
		for j := range n.Nodes[i].Neighbors {
			was = strings.ReplaceAll(was, n.Nodes[i].Neighbors[j].UDP.String(), "UDP")
			is = strings.ReplaceAll(is, c.Neighbors[j].UDP.String(), "UDP")
		}
		assert.Equal(t, was, is)
	}
	assert.NoError(t, lnx.CheckNetwork(configs...).Err())
}

// The Compose Specification's own loader accepts the file. It also reads the original .lnx files
// from it, although Compose replaces variables in them.
func TestComposeFilesLoad(t *testing.T) {
	tool := cached(t, composeTool)
	for name, n := range networks(t) {
		t.Run(name, func(t *testing.T) {
			path := written(t, t.TempDir(), exported(t, n, "compose"))
			var loaded struct {
				Services map[string]struct {
					Command  []string
					Image    string
					CapAdd   []string `json:"cap_add"`
					Networks map[string]struct {
						IPv4 string `json:"ipv4_address"`
					}
				}
				Configs map[string]struct{ Content string }
			}
			require.NoError(t, json.Unmarshal(run(t, nil, tool, "--format", "json", path), &loaded))
			require.Len(t, loaded.Services, len(n.Nodes))
			var texts []string
			for i, c := range n.Nodes {
				name := map[string]string{"my nodé": "my-nod"}[c.Name]
				if name == "" {
					name = c.Name
				}
				service := loaded.Services[name]
				assert.Equal(t, "tidepool:v1", service.Image)
				assert.Equal(t, []string{
					"run", "/etc/tidepool/" + name + ".lnx", "--daemon", "--socket",
					"/run/tidepool/" + name + ".sock",
				}, service.Command)
				addr := service.Networks["links"].IPv4
				text := loaded.Configs[name].Content
				texts = append(texts, strings.ReplaceAll(text, "$$", "$"))
				tun := false
				for _, f := range c.Interfaces {
					tun = tun || f.Tun != nil
				}
				assert.Equal(t, tun, len(service.CapAdd) == 1)
				assert.Equal(t, netip.MustParsePrefix("172.30.0.0/16").Addr().As4()[3]+byte(i)+2,
					netip.MustParseAddr(addr).As4()[3])
				assert.Contains(t, text, " "+addr+":")
			}
			same(t, n, texts)
		})
	}
}

// kubernetes-validate has the published schemas of the API.
func TestKubernetesManifestsAreValid(t *testing.T) {
	tool := cached(t, kubernetesTool)
	t.Setenv("PYTHONPATH", tool)
	dir := t.TempDir()
	args := []string{filepath.Join(tool, "bin", "kubernetes-validate"), "--strict"}
	for name, n := range networks(t) {
		t.Run(name, func(t *testing.T) {
			done := exported(t, n, "kubernetes")
			if testenv.Long() || name == "Odd 1" {
				args = append(args, written(t, dir, done))
			}

			// Each neighbor has the stable name of its node's pod.
			var texts []string
			pods, hosts := map[string]bool{}, map[string]bool{}
			decoder := yaml.NewDecoder(bytes.NewReader(done.Files[0].Text))
			for range 1 + 2*len(n.Nodes) {
				var m struct {
					Kind     string
					Metadata struct{ Name string }
					Data     map[string]string
					Spec     struct {
						ServiceName string `yaml:"serviceName"`
					}
				}
				require.NoError(t, decoder.Decode(&m))
				for _, text := range m.Data {
					texts = append(texts, text)
				}
				if m.Kind == "StatefulSet" {
					assert.LessOrEqual(t, len(m.Metadata.Name), 52)
					pods[m.Metadata.Name+"-0."+m.Spec.ServiceName] = true
				}
			}
			assert.Len(t, pods, len(n.Nodes))
			for i, text := range texts {
				c, err := lnx.Parse(n.Nodes[i].Name+".lnx", []byte(text))
				require.NoError(t, err)
				for _, nb := range c.Neighbors {
					if nb.Addr.String() != "10.0.1.1" { // this neighbor is outside the network
						assert.Contains(t, pods, nb.UDP.Host)
						hosts[nb.UDP.Host] = true
					}
				}
			}
			assert.Equal(t, pods, hosts)
		})
	}
	run(t, nil, "python3", args...)
}

// clabTopology has those fields of containerlab's documentation that an export uses.
type clabTopology struct {
	Name string
	Mgmt struct {
		Network string
		Subnet  string `yaml:"ipv4-subnet"`
	}
	Topology struct {
		Nodes map[string]struct {
			Kind, Image, Cmd, User string
			Binds                  []string
			Labels                 map[string]string
			Mgmt                   string `yaml:"mgmt-ipv4"`
		}
		Links []struct {
			Endpoints []string
			Vars      map[string]any
		}
	}
}

// The topology has only fields that containerlab documents, and is valid according to
// containerlab's schema.
func TestContainerlabTopologiesAreValid(t *testing.T) {
	schema, err := jsonschema.NewCompiler().Compile(
		filepath.Join(cached(t, containerlabSchema), "clab.schema.json"))
	require.NoError(t, err)
	for name, n := range networks(t) {
		done := exported(t, n, "containerlab")
		text := done.Files[0].Text
		var lab clabTopology
		require.NoError(t, yaml.UnmarshalWithOptions(text, &lab, yaml.DisallowUnknownField()), name)
		assert.Len(t, lab.Topology.Nodes, len(n.Nodes), name)
		var texts []string
		for _, f := range done.Files[1:] {
			texts = append(texts, string(f.Text))
			node := lab.Topology.Nodes[strings.TrimSuffix(f.Name, ".lnx")]
			assert.Equal(t, []string{f.Name + ":/etc/tidepool/" + f.Name + ":ro"}, node.Binds)
			assert.Contains(t, string(f.Text), " "+node.Mgmt+":")
			// The image's health check uses the node's socket at this path, as the image's user.
			assert.Contains(t, node.Cmd, " --socket /run/tidepool/", name)
			assert.Equal(t, strings.Contains(string(f.Text), "tun:"), node.User == "0", name)
		}
		same(t, n, texts)
		for _, l := range lab.Topology.Links {
			assert.Len(t, l.Endpoints, 2, name)
			for _, end := range l.Endpoints {
				assert.NotContains(t, end, ":eth0", "it is the management network's")
			}
		}
		var value any
		require.NoError(t, yaml.Unmarshal(text, &value))
		asJSON, err := json.Marshal(value)
		require.NoError(t, err)
		value, err = jsonschema.UnmarshalJSON(bytes.NewReader(asJSON))
		require.NoError(t, err)
		assert.NoError(t, schema.Validate(value), name)
	}
}

// Mininet's own Python classes can construct the topology.
func TestMininetScriptsConstruct(t *testing.T) {
	const python = "/usr/bin/python3" // Debian's Python, which has Debian's mininet
	if exec.Command(python, "-c", "import mininet.topo").Run() != nil {
		t.Skip("skip: needs mininet")
	}
	all, args := networks(t), []string{"-"}
	names := slices.Sorted(maps.Keys(all))
	for _, name := range names {
		args = append(args, written(t, t.TempDir(), exported(t, all[name], "mininet")))
	}
	out := run(t, []byte(`
import json, runpy, sys
for script in sys.argv[1:]:
	m = runpy.run_path(script)
	t = m['Network']()
	print(json.dumps({
		'files': [''.join(lines) for lines in m['FILES'].values()], 'hosts': t.hosts(), 'switches': t.switches(),
		'links': [[a, b, i['params1']['ip'], i.get('params2', {}).get('ip', '')]
			for a, b, i in t.links(withInfo=True)],
	}))
`), python, args...)
	decoder := json.NewDecoder(bytes.NewReader(out))
	for _, name := range names {
		n := all[name]
		var made struct {
			Files, Hosts, Switches []string
			Links                  [][]string
		}
		require.NoError(t, decoder.Decode(&made), name)
		assert.Len(t, made.Hosts, len(n.Nodes), name)
		for _, host := range made.Hosts {
			assert.LessOrEqual(t, len(host), 9, "names of interfaces have 15 characters")
		}
		same(t, n, made.Files)
		if name == "Odd 1" {
			assert.Len(t, made.Switches, 1, "a link of three nodes")
			assert.Len(t, made.Links, 4)
		}
		// each end has an address that its node binds, unless the node binds all addresses
		for _, l := range made.Links {
			files := strings.Join(made.Files, "")
			for _, addr := range l[2:] {
				host, _, _ := strings.Cut(addr, "/")
				assert.True(t, host == "" || strings.Contains(files, " "+host+":"), "%s: %v", name, l)
			}
		}
	}
}

// Without mininet, the script prints one line that says what to install.
func TestMininetScriptWithoutMininet(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("skip: needs python3")
	}
	script := written(t, t.TempDir(), exported(t, networks(t)["ring"], "mininet"))
	// -S: without installed packages
	said, err := exec.Command(python, "-S", script).CombinedOutput()
	require.Error(t, err)
	assert.Equal(t, "No module named 'mininet': install mininet (Debian: apt install mininet), and "+
		"use /usr/bin/python3\n", string(said))
}

// Each note appears once for each place.
func TestExportNotes(t *testing.T) {
	n := networks(t)["Odd 1"]
	var notes []string
	for _, note := range exported(t, n, "kubernetes").Notes {
		notes = append(notes, note.Error())
	}
	assert.Equal(t, []string{
		"Odd 1: note: kubernetes allows other names: 1 is n1, A is a, a is a-2, my nodé is my-nod",
		"on.lnx:1: note: the RIP keys of eth0 are in the output as plain text: keep it where only you can read it",
		"1.lnx:6: note: publish is about the container or host of the node, not this machine: check its addresses and publish its ports",
		"1.lnx:5: note: no node of the network has 10.0.1.1, so its UDP address 127.0.0.9:6000 is unchanged: write one that the container reaches",
		"1.lnx:1: note: the RIP keys of if0 are in the output as plain text: keep it where only you can read it",
		"1.lnx: note: impair if1 reads a file: put it into the image",
	}, notes)
}

func TestExportErrors(t *testing.T) {
	n := networks(t)["ring"]
	for to, want := range map[string]string{
		"": `cannot export the network: unknown format "": must be compose, containerlab, kubernetes or mininet`,
		"minimet": `cannot export the network: unknown format "minimet" (did you mean mininet?): ` +
			`must be compose, containerlab, kubernetes or mininet`,
	} {
		_, err := n.Export(to)
		require.ErrorIs(t, err, interchange.ErrExport)
		assert.EqualError(t, err, want)
	}
	for subnet, want := range map[string]string{
		"10.0.0.0/29": "cannot export the network to compose: subnet 10.0.0.0/29: too small for 6 nodes; choose a larger one",
		"10.0.0.1/24": "cannot export the network: subnet 10.0.0.1/24: must be an IPv4 network of at most 30 bits, such as 172.30.0.0/16",
		"fd00::/64":   "cannot export the network: subnet fd00::/64: must be an IPv4 network of at most 30 bits, such as 172.30.0.0/16",
	} {
		n.Subnet = netip.MustParsePrefix(subnet)
		_, err := n.Export("compose")
		assert.EqualError(t, err, want)
	}
	n.Subnet = netip.MustParsePrefix("10.0.0.0/28")
	_, err := n.Export("mininet")
	assert.EqualError(t, err, "cannot export the network to mininet: subnet 10.0.0.0/28: too small for 6 links; choose a larger one")
}
