package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tidepool-net/tidepool/internal/api"
	"github.com/tidepool-net/tidepool/internal/diagnostic"
	"github.com/tidepool-net/tidepool/internal/files"
	"github.com/tidepool-net/tidepool/internal/lnx"
	"github.com/tidepool-net/tidepool/internal/netctl"
	"github.com/tidepool-net/tidepool/internal/operator"
	"github.com/tidepool-net/tidepool/internal/repl"
	"github.com/tidepool-net/tidepool/internal/topology"
)

type generateOptions struct {
	out    string
	port   int
	seed   uint64
	family string
	plan   bool
	force  bool
	json   bool
}

type generated struct {
	Folder string   `json:"folder"`
	Files  []string `json:"files"`
	Before []string `json:"before"` // existing files that are not part of the new network
}

func netGenerateCommand() *cobra.Command {
	var o generateOptions
	c := &cobra.Command{
		Use:   "generate SHAPE SIZE...|FILE.net",
		Short: "write the files of a network, by shape or from a plan",
		Long: "Write the .lnx files of a network into a folder. The network has one of the\n" +
			"shapes below, or is read from FILE.net. With --plan, print a plan instead: lines\n" +
			"such as `link A B delay 20ms`, which you can edit and pass to `node net up` as\n" +
			"FILE.net. FILE.net may also be in the course's format, with lines such as\n" +
			"`node A localhost` and `A <-> B`; the .lnx files are then those that its net2lnx\n" +
			"would write. The shapes:\n\n  " +
			strings.Join(topology.Shapes(), "\n  "),
		Example: "  node net generate line 3 && node net up line-3\n" +
			"  node net generate --plan random 8 > web.net && node net up web.net",
		Args: usageArgs(cobra.MinimumNArgs(1)),
		RunE: func(c *cobra.Command, args []string) error { return o.run(c, args) },
	}
	f := c.Flags()
	f.StringVarP(&o.out, "out", "o", "",
		"write to `FOLDER`; the default is SHAPE-SIZE, or the name of FILE.net without .net")
	f.IntVar(&o.port, "port", topology.DefaultPort, "first UDP `PORT` of 127.0.0.1")
	repl.Limit(c, 1, math.MaxUint16, "port")
	f.Uint64Var(&o.seed, "seed", 1, "`SEED` of the random shape")
	familyFlag(c, &o.family)
	f.BoolVar(&o.plan, "plan", false, "print the plan instead")
	f.BoolVar(&o.json, "json", false, "print one JSON object with the written files")
	f.BoolVar(&o.force, "force", false, "overwrite existing .lnx files")
	return c
}

func familyFlag(c *cobra.Command, family *string) {
	c.Flags().StringVar(family, "family", "4",
		"IP `VERSION` of the links: 4, 6, or dual for both")
	repl.CompleteFlag(c, "family", topology.Families...)
}

// maxRouters is the number of routers on the longest path that RIP finds: RIP's infinity is 16.
const maxRouters = 16

func (o *generateOptions) run(c *cobra.Command, args []string) error {
	p, err := o.asked(c, args)
	if err != nil {
		return err
	}
	switch {
	case o.plan && (o.out != "" || o.force || o.json):
		return misuse(c, errors.New("--plan cannot be used with --out, --force or --json"))
	case o.port != topology.DefaultPort:
		p.Port = o.port
	}
	if c.Flags().Changed("family") {
		if p.Family, err = topology.ParseFamily(o.family); err != nil {
			return misuse(c, fmt.Errorf("--family %w", err))
		}
	}
	if len(p.Machines) > 0 && !o.plan {
		return misuse(c,
			fmt.Errorf("%s has nodes on other hosts: pass the file itself to `node net up`",
				args[0]))
	}
	if p.NamesAt == "" && !o.plan {
		p.NamesAt = topology.NoNames // other implementations reject dns lines
	}
	texts, err := p.Files()
	if err != nil {
		return misuse(c, err)
	}
	if a, b, routers := p.Furthest(); routers > maxRouters {
		_, _ = fmt.Fprintf(c.ErrOrStderr(),
			"note: %d routers between %s and %s: RIP reaches only %d hops\n", routers, a, b,
			maxRouters)
	}
	if o.plan {
		_, err := c.OutOrStdout().Write(p.Format())
		return err
	}
	if o.out == "" {
		o.out = networkName([]string{strings.Join(args, "-")})
	}
	return o.write(c, texts)
}

// write writes all files of a network, or none.
func (o *generateOptions) write(c *cobra.Command, texts []topology.File) error {
	old, _ := filepath.Glob(filepath.Join(o.out, "*.lnx"))
	if len(old) > 0 && !o.force {
		return &usageError{fmt.Errorf("%s already has .lnx files: use another --out, or --force",
			o.out)}
	}
	for i := range texts {
		texts[i].Name += ".lnx"
	}
	written, err := writeFiles(o.out, texts, o.force)
	if err != nil {
		return err
	}
	old = slices.DeleteFunc(old, func(name string) bool { return slices.Contains(written, name) })
	if o.json {
		return json.NewEncoder(c.OutOrStdout()).Encode(generated{
			o.out, written, append([]string{}, old...),
		})
	}
	for _, path := range old {
		_, _ = fmt.Fprintf(c.ErrOrStderr(),
			"note: %s was there before and is not part of the network\n", path)
	}
	_, err = fmt.Fprintf(c.ErrOrStderr(), "%s: %s; `%s net up %s` runs them\n", o.out,
		counted(len(texts), "file"), called(), diagnostic.ShellWord(o.out))
	return err
}

// asked returns the plan that the arguments describe: a shape or a file.
func (o *generateOptions) asked(c *cobra.Command, args []string) (*topology.Plan, error) {
	if len(args) == 1 && filepath.Ext(args[0]) == topology.Extension {
		return parsePlan(args[0])
	}
	p, err := topology.Generate(args, o.seed)
	if err != nil {
		return nil, misuse(c, err)
	}
	return p, nil
}

func parsePlan(path string) (*topology.Plan, error) {
	text, err := files.Text(path, files.MaxText)
	if err != nil {
		return nil, &usageError{err}
	}
	p, err := topology.Parse(path, text, operator.CheckWords)
	if err != nil {
		return nil, err
	}
	p.About = filepath.Base(path)
	return p, nil
}

// readPlan generates a network's files from a plan, in memory. The network has the plan's name.
func readPlan(path string) (*networkFiles, error) {
	p, err := parsePlan(path)
	if err != nil {
		return nil, err
	}
	source, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	f := &networkFiles{source: source, name: networkName([]string{path})}
	f.plan, f.planFile = p, path
	return f, f.generate()
}

func (f *networkFiles) generate() error {
	list, err := f.plan.Files()
	if err != nil {
		return &usageError{fmt.Errorf("%s: %w", f.planFile, err)}
	}
	f.nodes = nil
	for i := range list {
		made := &list[i]
		c, err := lnx.Parse(made.Name+".lnx", made.Text)
		if err != nil {
			return fmt.Errorf("BUG: topology: lnx refuses a generated file: %w", err)
		}
		host := ""
		if m := f.plan.MachineOf(i); m != nil {
			host = m.Name
		}
		f.nodes = append(f.nodes, networkNode{config: c, text: made.Text, host: host})
	}
	return nil
}

func (f *networkFiles) place(bad lnx.Errors) lnx.Errors {
	if f.plan == nil {
		return bad
	}
	return lnx.Errors{f.plan.PortsTaken(f.planFile, bad)}
}

func (o *netOptions) graphCommand() *cobra.Command {
	var format string
	c := &cobra.Command{
		Use:   "graph [NETWORK|FOLDER|FILE]",
		Short: "draw a network: SVG, DOT or Mermaid",
		Long: "Draw the network of a folder, of a FILE.net, or of a running network, where\n" +
			"stopped nodes are dashed. Without an argument it draws the only running\n" +
			"network. --json prints the same as the API at /v1/network.",
		Example: "  node net graph nets/ring > ring.svg\n" +
			"  node net graph --format mermaid nets/ring",
		Args: usageArgs(cobra.MaximumNArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			draw, ok := map[string]func(*topology.Graph) string{
				"svg": (*topology.Graph).SVG, "dot": (*topology.Graph).DOT,
				"mermaid": (*topology.Graph).Mermaid, "json": shapeText,
			}[format]
			if o.json {
				draw, ok = shapeText, ok && !c.Flags().Changed("format") || format == "json"
			}
			if !ok {
				return misuse(c, fmt.Errorf("--format %q: must be svg, dot, mermaid or json",
					format))
			}
			g, err := o.graph(c, args)
			if err != nil {
				return err
			}
			_, err = fmt.Fprint(c.OutOrStdout(), draw(g))
			return err
		},
	}
	c.Flags().StringVar(&format, "format", "svg", "output `FORMAT`: svg, dot, mermaid or json")
	c.Flags().BoolVar(&o.json, "json", false, "the same as --format json")
	repl.CompleteFlag(c, "format", "svg", "dot", "mermaid", "json")
	return c
}

func shapeText(g *topology.Graph) string {
	text, err := json.Marshal(api.ShapeOf(g))
	if err != nil {
		panic("BUG: plain values: " + err.Error())
	}
	return string(text) + "\n"
}

// graph returns the graph of files, or of a running network.
func (o *netOptions) graph(c *cobra.Command, args []string) (*topology.Graph, error) {
	if len(args) == 1 {
		if _, err := os.Stat(args[0]); err == nil {
			f, err := readNetwork(args[0])
			if err != nil {
				return nil, err
			}
			return topology.From(f.name, f.configs()), nil
		} else if strings.ContainsAny(args[0], `/\.`) {
			return nil, &usageError{fmt.Errorf("%s: no such folder or file", args[0])}
		}
	}
	_, n, err := o.network(args)
	if err != nil {
		return nil, err
	}
	var all []*lnx.Config
	for _, m := range n.Members() {
		config, err := configOf(m)
		if err != nil {
			return nil, err
		}
		all = append(all, config)
	}
	g := topology.From(n.Name(), all)
	for i, status := range n.Status(c.Context()).Nodes {
		g.Nodes[i].Down = status.Life != netctl.Up
	}
	return g, nil
}
